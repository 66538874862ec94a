//! Image and package, as far as they can be looked at without a container runtime.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value as Json;
use sluicegate::config::Listener;

use crate::support::manifests::{all_containers, container, gate, list, pod, shipped};
use crate::support::process::{Process, binary};
use crate::support::tls::Files;
use crate::support::{free_udp, program, repository, require};

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn file(path: &str) -> String {
    std::fs::read_to_string(repository(path)).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The Dockerfile's instructions, lines that go on joined, comments left out.
fn instructions() -> Vec<(String, String)> {
    let text = file("Dockerfile").replace("\\\n", " ");
    let lines = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '));
    lines.map(|(word, rest)| (word.to_owned(), rest.trim().to_owned())).collect()
}

#[test]
fn the_image_is_empty_but_for_a_binary_that_is_not_root() {
    let all = instructions();
    let stages: Vec<_> = all.iter().enumerate().filter(|(_, (word, _))| word == "FROM").collect();
    let channel = file("rust-toolchain.toml").parse::<toml::Table>().unwrap()["toolchain"]["channel"].clone();
    let channel = channel.as_str().unwrap();
    assert_eq!(stages[0].1.1, format!("docker.io/library/rust:{channel}-slim-bookworm AS build"));
    assert!(all.contains(&("ENV".into(), format!("RUSTUP_TOOLCHAIN={channel}"))));
    assert_eq!((stages.len(), stages[1].1.1.as_str()), (2, "scratch"));
    let image = &all[stages[1].0..];
    let of = |word: &str| image.iter().find(|(found, _)| found == word).unwrap().1.as_str();
    assert!(image.iter().all(|(word, _)| word != "RUN"), "scratch has nothing to run");
    let Some(objects) = shipped("overlays/sidecar") else { return };
    let user = pod(gate(&objects))["securityContext"]["runAsUser"].as_u64().unwrap();
    assert_eq!(of("USER"), format!("{user}:{user}"));
    assert!(of("LABEL").contains(&format!("image.version=\"{VERSION}\"")));
    assert!(file("Dockerfile").contains(&format!("-t sluicegate:{VERSION} ")));
    let ports = list(container(pod(gate(&objects)), "sluicegate"), "ports");
    let port = |port: &Json| {
        format!("{}/{}", port["containerPort"], port["protocol"].as_str().unwrap().to_lowercase())
    };
    assert_eq!(of("EXPOSE"), ports.map(port).collect::<Vec<_>>().join(" "));
    // What it does when it is only told where Vector is.
    let mut words: Vec<String> = serde_json::from_str(of("CMD")).unwrap();
    assert_eq!(words.remove(0), "run");
    let mut command = Command::new(binary());
    command.arg("config").args(words).env("SLUICEGATE_VECTOR", "http://127.0.0.1:6000");
    let shown = Process::spawn(command).end();
    assert!(shown.status.success() && shown.stdout.contains("[::]:5514"), "{}", shown.stderr);
}

#[test]
fn hadolint_has_nothing_to_say() {
    let hadolint = program("hadolint");
    if !require(hadolint.is_some(), "hadolint (.ci/tools)") {
        return;
    }
    let output = Command::new(hadolint.unwrap()).arg(repository("Dockerfile")).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

/// A build context as .dockerignore makes it has all that cargo wants to see, and nothing that it does not.
#[test]
fn the_build_context_is_enough() {
    let (files, text) = (Files::new(), file(".dockerignore"));
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(lines.next(), Some("*"), "what is not named stays out");
    for path in lines.map(|line| line.strip_prefix('!').unwrap()) {
        let to = files.path().join(path);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        let copied = Command::new("cp").arg("-r").arg(repository(path)).arg(to).status().unwrap();
        assert!(copied.success(), "{path}");
    }
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--locked", "--no-deps", "--format-version", "1"])
        .current_dir(files.path())
        .output()
        .unwrap();
    assert!(metadata.status.success(), "{}", said(&metadata));
    let targets: Json = serde_json::from_slice(&metadata.stdout).unwrap();
    for target in targets["packages"][0]["targets"].as_array().unwrap() {
        assert!(Path::new(target["src_path"].as_str().unwrap()).exists(), "{target}");
    }
    assert!(files.path().join("proto/vector.proto").exists());
    assert!(!files.path().join("tests").exists());
}

/// With a cargo that only says what it was told.
#[test]
fn the_static_build_says_nothing_of_the_machine_that_makes_it() {
    let files = Files::new();
    let cargo = files.put("cargo", "#!/bin/sh\necho \"$RUSTFLAGS|$CFLAGS|$CARGO_TARGET_DIR|$*\"\n");
    std::fs::set_permissions(&cargo, PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", files.path().display(), std::env::var("PATH").unwrap());
    let run = |target: Option<&str>| {
        let mut command = Command::new(repository("packaging/static"));
        command.arg("--verbose").env("PATH", &path).env("CARGO_HOME", "/home/me/.cargo").env_remove("TARGET");
        if let Some(target) = target {
            command.env("TARGET", target);
        }
        said(&command.output().unwrap())
    };
    let own = run(None);
    let checkout = repository("packaging/..").canonicalize().unwrap();
    assert!(own.contains("+crt-static"), "{own}");
    for language in ["--remap-path-prefix", "-ffile-prefix-map"] {
        assert!(own.contains(&format!("{language}={}=/sluicegate", checkout.display())), "{own}");
        assert!(own.contains(&format!("{language}=/home/me/.cargo=/cargo")), "{own}");
    }
    assert!(own.contains(&format!("|{}/target|", checkout.display())), "what crates generate is there, too");
    assert!(
        own.contains("|build --release --locked --target ") && own.ends_with("-gnu --verbose\n"),
        "{own}"
    );
    assert!(run(Some("aarch64-unknown-linux-gnu")).contains("--target aarch64-unknown-linux-gnu"));
}

/// Both places that tune a node say the same, in words that the kernel knows.
#[test]
fn kernel_settings_exist_and_are_enough() {
    let text = file("systemd/90-sluicegate.conf");
    let settings: Vec<_> =
        text.lines().filter_map(|line| line.split_once(" = ").filter(|_| !line.starts_with('#'))).collect();
    for (key, _) in &settings {
        assert!(Path::new("/proc/sys").join(key.replace('.', "/")).exists(), "{key}");
    }
    let rmem_max = settings.iter().find(|(key, _)| *key == "net.core.rmem_max").unwrap().1;
    let asked = Listener::new(free_udp()).receive_buffer_bytes;
    assert!(rmem_max.parse::<usize>().unwrap() >= asked, "one worker asks for all of it");
    let Some(objects) = shipped("node-tuning") else { return };
    let command =
        all_containers(pod(&objects[0])).find_map(|container| container["command"].as_array()).unwrap();
    let tuned: Vec<_> = command.iter().filter_map(|word| word.as_str()?.split_once('=')).collect();
    assert_eq!(tuned, settings);
}

#[test]
fn what_goes_into_the_package_is_there() {
    let manifest: Json = serde_json::to_value(file("Cargo.toml").parse::<toml::Table>().unwrap()).unwrap();
    let deb = &manifest["package"]["metadata"]["deb"];
    let assets: Vec<_> = list(deb, "assets").map(|asset| asset[0].as_str().unwrap()).collect();
    for asset in &assets[1..] {
        let (folder, pattern) = asset.rsplit_once('/').unwrap_or(("", asset));
        let ending = pattern.strip_prefix('*');
        let found = std::fs::read_dir(repository(folder)).unwrap().any(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            ending.map_or(name == pattern, |ending| name.ends_with(ending))
        });
        assert!(found, "{asset}");
    }
    assert_eq!(list(deb, "conf-files").collect::<Vec<_>>(), ["/etc/sluicegate/sluicegate.toml"]);
    let scripts = repository(deb["maintainer-scripts"].as_str().unwrap());
    for name in ["postinst", "postrm"] {
        let output = Command::new("sh").arg("-n").arg(scripts.join(name)).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        assert!(std::fs::read_to_string(scripts.join(name)).unwrap().contains("\n#DEBHELPER#\n"));
    }
    let units = repository(deb["systemd-units"]["unit-scripts"].as_str().unwrap());
    assert!(units.join("sluicegate.service").exists());
}
