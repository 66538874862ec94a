//! The pod of the aggregator overlay, played: its configuration and its restrictions, on a network of its own between a sender, a
//! node and three Vectors. There is no kubelet and no kube-proxy here; the node routes.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;

use serde_json::Value as Json;

use crate::health::{CLIENT, has_clients};
use crate::support::manifests::{container, gate, list, pod, shipped};
use crate::support::namespaces::Hosts;
use crate::support::process::{Process, binary};
use crate::support::tls::Files;
use crate::support::wait_until;

const VECTORS: [&str; 3] = ["vector-0", "vector-1", "vector-2"];

/// Makes a container's root of what `$1` has, read-only but for the spool's volume, and runs sluicegate in it as the pod does:
/// not root, without capabilities, and unable to get any.
const RUN_AS_POD: &str = r#"
set -e
from=$1 binary=$2
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$from/root"
cd "$from/root"
mkdir -p usr proc etc var/lib/sluicegate
mount --bind /usr usr
mount -o remount,bind,ro usr
for link in bin lib lib64; do ln -s "usr/$link" "$link"; done
mount -t proc proc proc
cp -r "$from/etc/." etc
touch sluicegate
mount --bind "$binary" sluicegate
mount -t tmpfs -o uid=65534,gid=65534,mode=700 tmpfs var/lib/sluicegate
mount -o remount,ro .
exec chroot . /usr/bin/setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs \
    /sluicegate run --config /etc/sluicegate/sluicegate.toml
"#;

fn start(hosts: &Hosts, files: &Files, objects: &[Json]) -> Process {
    let map = objects.iter().find(|object| !object["data"]["sluicegate.toml"].is_null()).unwrap();
    let etc = files.path().join("etc");
    std::fs::create_dir_all(etc.join("sluicegate")).unwrap();
    std::fs::create_dir(files.path().join("root")).unwrap();
    let config = map["data"]["sluicegate.toml"].as_str().unwrap();
    std::fs::write(etc.join("sluicegate/sluicegate.toml"), config).unwrap();
    // The headless Service: one name, an address for each Vector.
    let names: String = VECTORS.iter().map(|name| format!("{} vector\n", hosts.address(name))).collect();
    std::fs::write(etc.join("hosts"), names).unwrap();
    std::fs::write(etc.join("host.conf"), "multi on\n").unwrap();
    let script = files.put("run-as-pod", RUN_AS_POD);
    let program = binary();
    let words = [
        "unshare",
        "--mount",
        "sh",
        script.to_str().unwrap(),
        files.path().to_str().unwrap(),
        program.to_str().unwrap(),
    ];
    let mut command = hosts.command("pod", &words);
    for variable in list(container(pod(gate(objects)), "sluicegate"), "env") {
        command.env(variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap_or("node-1"));
    }
    let mut run = Process::spawn(command);
    run.wait_for_log("admin port");
    run
}

/// It runs as it is written in the manifest, and cannot do more.
fn is_restricted(run: &Process) {
    let status = std::fs::read_to_string(format!("/proc/{}/status", run.id())).unwrap();
    let of = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).unwrap().trim().to_owned();
    assert_eq!(of("Uid:").split_whitespace().collect::<Vec<_>>(), ["65534"; 4]);
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(of(set), "0000000000000000", "{set}");
    }
    assert_eq!(of("NoNewPrivs:"), "1");
    let root = format!("/proc/{}/root", run.id());
    let error = std::fs::write(format!("{root}/etc/new"), "").unwrap_err(); // as root, and even so
    assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    assert_eq!(std::fs::metadata(format!("{root}/var/lib/sluicegate")).unwrap().uid(), 65_534);
}

#[test]
fn one_flow_is_spread_over_cores_and_vectors_and_keeps_its_address() {
    let Some(objects) = shipped("overlays/aggregator") else { return };
    let Some(hosts) = Hosts::new(&[&["sender", "pod"], &VECTORS[..]].concat()) else { return };
    let files = Files::new();
    let program = binary().display().to_string();
    let mut vectors: Vec<_> = VECTORS
        .iter()
        .map(|name| Process::spawn(hosts.command(name, &[&program, "receive", "0.0.0.0:6000", "--json"])))
        .collect();
    vectors.iter_mut().for_each(|vector| vector.wait_for_log("receiving"));
    let run = start(&hosts, &files, &objects);
    is_restricted(&run);
    let admin = format!("{}:9615", hosts.address("pod"));
    if has_clients() {
        // The kubelet's probe, from the node.
        wait_until("it is ready", || {
            hosts.inside("node", &["/usr/bin/python3", "-c", CLIENT, &admin]).trim()
                == "SERVING SERVING SERVING"
        });
    }
    wait_until("every connection is up", || run.stderr().matches("connected").count() >= 6);

    let target = format!("{}:5514", hosts.address("pod"));
    let load =
        [&program, "load", &target, "--count", "20000", "--rate", "4000", "--size", "300", "--flows", "1"];
    let sent = Process::spawn(hosts.command("sender", &load)).end().json();
    assert_eq!(sent["sent"], 20_000);
    let books = run.stop().json();
    let number = |key: &str| books[key].as_u64().unwrap();
    assert_eq!(number("received") + number("kernel_drops"), 20_000, "{books}");
    assert_eq!(number("delivered"), number("received"), "{books}");
    for worker in books["workers"].as_array().unwrap() {
        let share = worker["received"].as_u64().unwrap() as f64 / number("received") as f64;
        assert!((0.4..0.6).contains(&share), "one flow, two workers: {books}");
    }
    assert_eq!(books["workers"].as_array().unwrap().len(), 2);

    let sender = Json::from(hosts.address("sender").to_string());
    let (mut messages, mut shares) = (BTreeSet::new(), BTreeMap::new());
    for (name, vector) in VECTORS.iter().zip(vectors) {
        for line in vector.stop().stdout.lines() {
            let event: Json = serde_json::from_str(line).unwrap();
            if event["message"].is_null() {
                continue; // the last line: the receiver's own books
            }
            assert_eq!((&event["source_ip"], &event["node"]), (&sender, &"node-1".into()), "{event}");
            assert!(messages.insert(event["message"].to_string()), "twice: {event}");
            *shares.entry(*name).or_insert(0_u64) += 1;
        }
    }
    assert_eq!(messages.len() as u64, number("delivered"));
    for name in VECTORS {
        let share = shares.get(name).copied().unwrap_or_default() as f64 / messages.len() as f64;
        assert!(share > 0.15, "each Vector has work: {shares:?}");
    }
}
