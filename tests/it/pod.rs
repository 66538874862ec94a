//! The pods of the aggregator and the daemonset overlay, played: their configuration and restrictions, on networks of their own between a
//! sender, a node and three Vectors. There is no kubelet and no kube-proxy here; the node routes.

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
shift 2
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
    /sluicegate "$@"
"#;

/// Starts the pod on a host; `files` is where its root is made.
fn start(hosts: &Hosts, host: &str, files: &Files, objects: &[Json]) -> Process {
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
    let container = container(pod(gate(objects)), "sluicegate");
    let mut words = vec!["unshare", "--mount", "sh"];
    words.extend([&*script, files.path(), &*program].map(|path| path.to_str().unwrap()));
    words.extend(list(container, "args").map(|argument| argument.as_str().unwrap()));
    let mut command = hosts.command(host, &words);
    for variable in list(container, "env") {
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

/// Vectors that print what they get, each on its own host.
fn start_vectors(hosts: &Hosts) -> Vec<Process> {
    let program = binary().display().to_string();
    let start =
        |name: &&str| Process::spawn(hosts.command(name, &[&program, "receive", "0.0.0.0:6000", "--json"]));
    let mut vectors: Vec<_> = VECTORS.iter().map(start).collect();
    vectors.iter_mut().for_each(|vector| vector.wait_for_log("receiving"));
    vectors
}

/// Waits until the pod is ready as the node's kubelet would find out, and every Vector is connected to.
fn wait_until_ready(hosts: &Hosts, host: &str, run: &Process) {
    let admin = format!("{}:9615", hosts.address(host));
    if has_clients() {
        let said = || hosts.inside("node", &["/usr/bin/python3", "-c", CLIENT, &admin]);
        wait_until("it is ready", || said().trim() == "SERVING SERVING SERVING");
    }
    wait_until("every connection is up", || run.stderr().matches("connected").count() >= 6);
}

/// One flow of numbered messages from the sender's host.
fn load(hosts: &Hosts, target: &str, count: u32, rate: u32) -> Process {
    let (program, count, rate) = (binary().display().to_string(), count.to_string(), rate.to_string());
    let words =
        [&program, "load", target, "--count", &count, "--rate", &rate, "--size", "300", "--flows", "1"];
    Process::spawn(hosts.command("sender", &words))
}

/// What the pod on a host has received, as its admin port tells the node.
fn received(hosts: &Hosts, host: &str) -> u64 {
    let url = format!("http://{}:9615/status", hosts.address(host));
    let status: Json = serde_json::from_str(&hosts.inside("node", &["curl", "-s", &url])).unwrap();
    status["received"].as_u64().unwrap()
}

/// Ends an update: the old pod, then the load of 20,000, then the new pod. Both had work, and each message was delivered once.
fn nothing_is_lost(hosts: &Hosts, sending: Process, (old, new): (Process, Process), vectors: Vec<Process>) {
    let old = old.stop().json();
    assert_eq!(sending.end().json()["sent"], 20_000);
    let new = new.stop().json();
    let both = |key: &str| old[key].as_u64().unwrap() + new[key].as_u64().unwrap();
    assert!(old["received"].as_u64() > Some(2_000) && new["received"].as_u64() > Some(500), "{old} {new}");
    assert_eq!((both("received"), both("delivered")), (20_000, 20_000), "{old} {new}");
    assert_eq!(arrived(hosts, vectors).values().sum::<u64>(), 20_000);
}

/// Stops the Vectors: how many different messages each had, none of them twice and all of them with the sender's address.
fn arrived(hosts: &Hosts, vectors: Vec<Process>) -> BTreeMap<&'static str, u64> {
    let sender = Json::from(hosts.address("sender").to_string());
    let (mut messages, mut shares) = (BTreeSet::new(), BTreeMap::new());
    for (name, vector) in VECTORS.into_iter().zip(vectors) {
        for line in vector.stop().stdout.lines() {
            let event: Json = serde_json::from_str(line).unwrap();
            if event["message"].is_null() {
                continue; // the last line: the receiver's own books
            }
            assert_eq!((&event["source_ip"], &event["node"]), (&sender, &"node-1".into()), "{event}");
            assert!(messages.insert(event["message"].to_string()), "twice: {event}");
            *shares.entry(name).or_insert(0) += 1;
        }
    }
    shares
}

#[test]
fn one_flow_is_spread_over_cores_and_vectors_and_keeps_its_address() {
    let Some(objects) = shipped("overlays/aggregator") else { return };
    let Some(hosts) = Hosts::new(&[&["sender", "pod"], &VECTORS[..]].concat()) else { return };
    let (files, vectors) = (Files::new(), start_vectors(&hosts));
    let run = start(&hosts, "pod", &files, &objects);
    is_restricted(&run);
    wait_until_ready(&hosts, "pod", &run);
    let sent = load(&hosts, &format!("{}:5514", hosts.address("pod")), 20_000, 4_000).end().json();
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
    let shares = arrived(&hosts, vectors);
    assert_eq!(shares.values().sum::<u64>(), number("delivered"));
    for name in VECTORS {
        let share = shares.get(name).copied().unwrap_or_default() as f64 / number("delivered") as f64;
        assert!(share > 0.15, "each Vector has work: {shares:?}");
    }
}

/// The Deployment's update as Kubernetes goes about it: the new pod first, once it is ready the Service's address leads there, the
/// old one reads on for a while (`preStop`), and then has to stop. The node's route plays kube-proxy.
#[test]
fn a_rolling_update_behind_the_service_loses_nothing() {
    const SERVICE: &str = "10.96.0.10";
    let Some(objects) = shipped("overlays/aggregator") else { return };
    let Some(hosts) = Hosts::new(&[&["sender", "old", "new"], &VECTORS[..]].concat()) else { return };
    if !has_clients() {
        return;
    }
    let route_to = |host: &str| {
        let address = hosts.address(host).to_string();
        hosts.inside("node", &["ip", "route", "replace", SERVICE, "via", &address]);
    };
    for host in ["old", "new"] {
        hosts.inside(host, &["ip", "address", "add", &format!("{SERVICE}/32"), "dev", "lo"]);
    }
    let (files, vectors) = ((Files::new(), Files::new()), start_vectors(&hosts));
    let old = start(&hosts, "old", &files.0, &objects);
    wait_until_ready(&hosts, "old", &old);
    route_to("old");
    let sending = load(&hosts, &format!("{SERVICE}:5514"), 20_000, 2_000);
    wait_until("the old pod has work", || received(&hosts, "old") > 2_000);
    let new = start(&hosts, "new", &files.1, &objects);
    wait_until_ready(&hosts, "new", &new);
    route_to("new");
    wait_until("the new pod has it", || received(&hosts, "new") > 500);
    nothing_is_lost(&hosts, sending, (old, new), vectors);
}

/// The DaemonSet's update: the new pod starts on the same host, takes over the sockets, and the old one has its end when Kubernetes
/// says so, not before. Both see each other's processes here, which pods do not: for that see the take-over's own tests.
#[test]
fn an_update_on_the_nodes_own_network_loses_nothing() {
    let Some(objects) = shipped("overlays/daemonset") else { return };
    let Some(hosts) = Hosts::new(&[&["sender", "pod"], &VECTORS[..]].concat()) else { return };
    let (files, vectors) = ((Files::new(), Files::new()), start_vectors(&hosts));
    let mut old = start(&hosts, "pod", &files.0, &objects);
    wait_until_ready(&hosts, "pod", &old);
    let sending = load(&hosts, &format!("{}:5514", hosts.address("pod")), 20_000, 4_000);
    wait_until("the old pod has work", || received(&hosts, "pod") > 2_000);
    let mut new = start(&hosts, "pod", &files.1, &objects);
    new.wait_for_log("taken over");
    old.wait_for_log("staying until told to stop");
    wait_until_ready(&hosts, "pod", &new);
    assert!(old.is_running(), "or the kubelet would start it again");
    nothing_is_lost(&hosts, sending, (old, new), vectors);
}
