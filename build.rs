//! Compiles `proto/` with `protox`, a protobuf compiler in Rust: no `protoc`, no network, no git.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(["proto/vector.proto", "proto/event.proto"], ["proto"])?;

    let mut config = prost_build::Config::new();
    // Payloads stay slices of the request's buffer instead of being copied out one by one.
    config.bytes(["."]);
    // Keys in order make printed events and test failures readable.
    config.btree_map(["."]);

    tonic_prost_build::configure().build_client(false).compile_fds_with_config(descriptors, config)?;
    Ok(())
}
