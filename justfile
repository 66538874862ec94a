# `just check` is what CI runs.

default: check

fmt:
    cargo fmt --check

lint:
    cargo clippy --locked --all-targets -- -D warnings

test:
    cargo test --locked

doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps

deny:
    cargo deny check

check: fmt lint doc test

demo:
    cargo run --release -- demo

bench:
    cargo run --release -- bench --runs 5
    cargo bench --bench parse
    cargo bench --bench scaling

# Needs cargo-fuzz and a nightly toolchain.
fuzz seconds="600":
    cargo +nightly fuzz run -s none -O datagram -- -max_total_time={{seconds}} -max_len=65507

# Real senders for the tests, on Debian, as root.
tools:
    .ci/tools
