//! The manifests: rendered by kubectl, held to Kubernetes' schemas and Pod Security rules, to the configuration inside
//! them, and to each other.

use std::process::Command;

use serde_json::{Value as Json, json};
use sluicegate::config::{Config, Draft};

use crate::support::manifests::{
    OVERLAYS, all_containers, breaches, bytes, container, gate, list, named, pod, relative, rendered,
    shipped, workloads,
};
use crate::support::process::Process;
use crate::support::tls::Files;
use crate::support::{repository, require};

/// The oldest release with all that is used (native sidecars, a sleep before the stop), and the newest one known.
const RELEASES: [&str; 3] = ["1.30.0", "1.34.0", "1.37.0"];

/// What a program keeps in memory beside events, as `sluicegate check` counts it.
const PROGRAM: u64 = 64 << 20;

#[test]
fn kubernetes_takes_them() {
    let schemas = repository("target/tools/python");
    if !require(schemas.join("kubernetes_validate").exists(), "kubernetes-validate (.ci/tools)") {
        return;
    }
    let files = Files::new();
    let mut paths = Vec::new();
    for name in OVERLAYS.into_iter().chain(["node-tuning"]) {
        let Some((text, objects)) = rendered(&repository("k8s").join(name)) else { return };
        assert!(!objects.is_empty());
        paths.push(files.put(&format!("{}.yaml", name.replace('/', "-")), &text));
    }
    for release in RELEASES {
        let output = Command::new("/usr/bin/python3")
            .args(["-m", "kubernetes_validate", "--strict", "-k", release])
            .args(&paths)
            .env("PYTHONPATH", &schemas)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{release}: {said}");
        assert!(said.matches("passed").count() > 25, "{said}");
    }
}

/// Without the operator's CRD the API server knows no PodMonitor, so it is added on demand.
#[test]
fn a_pod_monitor_can_be_added_to_each() {
    for name in OVERLAYS {
        let files = Files::new();
        let (base, monitor) =
            (relative(files.path(), name), relative(files.path(), "components/pod-monitor"));
        let text = format!("resources: [{}]\ncomponents: [{}]\n", base.display(), monitor.display());
        files.put("kustomization.yaml", &text);
        let Some((_, objects)) = rendered(files.path()) else { return };
        let monitor = named(&objects, "PodMonitor", "sluicegate");
        let gate = gate(&objects);
        assert_eq!(monitor["spec"]["selector"], gate["spec"]["selector"]);
        let rules = &monitor["spec"]["podMetricsEndpoints"][0]["relabelings"];
        let admin = configuration(&objects).admin.address.unwrap().port();
        let container = &container(pod(gate), "sluicegate")["name"];
        assert_eq!(rules[0]["regex"], format!("{};({admin})?", container.as_str().unwrap()));
        assert_eq!(
            (&rules[1]["replacement"], &rules[2]["replacement"]),
            (&json!(format!("$1:{admin}")), &json!(format!("[$1]:{admin}")))
        );
        assert!(objects.iter().filter(|object| object["kind"] != "PodMonitor").count() + 1 == objects.len());
    }
}

#[test]
fn pods_keep_to_the_restricted_profile() {
    for name in OVERLAYS {
        let Some(objects) = shipped(name) else { return };
        let on_host = name == "overlays/daemonset";
        for workload in workloads(&objects) {
            let allowed: &[&str] =
                if on_host && workload["kind"] == "DaemonSet" { &["hostNetwork"] } else { &[] };
            assert_eq!(breaches(pod(workload)), allowed, "{name}");
            assert_eq!(pod(workload)["automountServiceAccountToken"], false, "{name}");
            for container in all_containers(pod(workload)) {
                let resources = &container["resources"];
                assert_eq!(resources["requests"]["memory"], resources["limits"]["memory"]);
                assert!(!resources["requests"]["cpu"].is_null() && resources["limits"]["cpu"].is_null());
            }
        }
        let profile = if on_host { "privileged" } else { "restricted" };
        let labels = &named(&objects, "Namespace", "sluicegate")["metadata"]["labels"];
        assert_eq!(labels["pod-security.kubernetes.io/enforce"], profile, "{name}");
    }
    // The rules see what breaks them.
    let Some(objects) = shipped("node-tuning") else { return };
    let found = breaches(pod(&objects[0]));
    for breach in ["hostNetwork", "\"sysctl\": privileged", "\"sysctl\": capabilities"] {
        assert!(found.iter().any(|found| found == breach), "{found:?}");
    }
    assert!(found.iter().all(|breach| breach == "hostNetwork" || breach.contains("sysctl")), "{found:?}");
}

/// The configuration of a workload's sluicegate: the file of its ConfigMap, and its variables over it.
fn configuration(objects: &[Json]) -> Config {
    let container = container(pod(gate(objects)), "sluicegate");
    let map = objects.iter().find(|object| !object["data"]["sluicegate.toml"].is_null()).unwrap();
    let mut args: Vec<_> = list(container, "args").map(|arg| arg.as_str().unwrap()).collect();
    if let Some(at) = args.iter().position(|arg| *arg == "--takeover") {
        assert_eq!(args.drain(at..).collect::<Vec<_>>(), ["--takeover", "@sluicegate"]);
    }
    assert_eq!(args, ["run", "--config", "/etc/sluicegate/sluicegate.toml"]);
    let files = Files::new();
    let path = files.put("sluicegate.toml", map["data"]["sluicegate.toml"].as_str().unwrap());
    let mut command = Command::new(crate::support::process::binary());
    command.args(["config", "--config", path.to_str().unwrap()]);
    for variable in list(container, "env") {
        let value = variable["value"].as_str().unwrap_or("node-1");
        command.env(variable["name"].as_str().unwrap(), value);
    }
    let shown = Process::spawn(command).end();
    assert!(shown.status.success(), "{}", shown.stderr);
    assert!(shown.stdout.contains("\"node\" = \"node-1\""), "{}", shown.stdout);
    let effective = files.put("effective.toml", &shown.stdout);
    Draft::read(&effective).finish().unwrap()
}

#[test]
fn the_pod_fits_the_configuration_inside_it() {
    for name in OVERLAYS {
        let Some(objects) = shipped(name) else { return };
        let (config, pod) = (configuration(&objects), pod(gate(&objects)));
        let (gate, listener) = (container(pod, "sluicegate"), &config.listeners[0]);
        let version = env!("CARGO_PKG_VERSION");
        assert!(gate["image"].as_str().unwrap().ends_with(&format!("/sluicegate:{version}")));
        let ports: Vec<_> =
            list(gate, "ports").map(|port| (&port["protocol"], &port["containerPort"])).collect();
        let admin = config.admin.address.unwrap();
        let declared =
            [(&json!("UDP"), &json!(listener.address.port())), (&json!("TCP"), &json!(admin.port()))];
        // On the host's network they would be the node's, which no two pods have at once.
        assert_eq!(ports, if pod["hostNetwork"] == true { &declared[..0] } else { &declared });
        assert!(listener.address.ip().is_unspecified() && admin.ip().is_unspecified());
        for (probe, service) in
            [("startupProbe", "liveness"), ("livenessProbe", "liveness"), ("readinessProbe", "readiness")]
        {
            assert_eq!(gate[probe]["grpc"], json!({ "port": admin.port(), "service": service }), "{probe}");
        }
        let requests = &gate["resources"]["requests"];
        assert_eq!(requests["cpu"].as_str().unwrap(), listener.workers.to_string());
        let sockets = 2 * listener.receive_buffer_bytes as u64; // the kernel doubles what is asked for
        let mut all = config.clone();
        // The headless name stands for each of its pods.
        let vectors = objects.iter().find(|object| object["kind"] == "StatefulSet");
        let addresses = vectors.map_or(1, |vectors| vectors["spec"]["replicas"].as_u64().unwrap());
        all.vector.endpoints = vec![config.vector.endpoints[0].clone(); addresses as usize];
        let need = all.memory_ceiling() as u64 + sockets + PROGRAM;
        let limit = bytes(&gate["resources"]["limits"]["memory"]);
        assert!((need..need * 5 / 4).contains(&limit), "{need} needed, {limit} granted");
        let spool = list(pod, "volumes").find(|volume| volume["name"] == "spool").unwrap();
        assert!(bytes(&spool["emptyDir"]["sizeLimit"]) > config.buffer.max_disk_bytes as u64);
        assert!(bytes(&requests["ephemeral-storage"]) > config.buffer.max_disk_bytes as u64);
        let data_dir = list(gate, "volumeMounts").find(|mount| mount["name"] == "spool").unwrap();
        assert_eq!(data_dir["mountPath"].as_str().unwrap(), config.data_dir.to_str().unwrap());
        let sleep = gate["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64().unwrap_or(0);
        let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
        assert!(grace > sleep + config.shutdown_timeout.as_secs(), "{grace}");
    }
}

/// Datagrams find a port, the port a pod, and the pod's batches a Vector.
#[test]
fn services_lead_to_the_ports_that_are_listened_on() {
    for name in OVERLAYS {
        let Some(objects) = shipped(name) else { return };
        let (config, gate) = (configuration(&objects), gate(&objects));
        assert_eq!(gate["spec"]["selector"]["matchLabels"], gate["spec"]["template"]["metadata"]["labels"]);
        let map = objects.iter().find(|object| !object["data"]["vector.yaml"].is_null()).unwrap();
        let vector: Json = serde_saphyr::from_str(map["data"]["vector.yaml"].as_str().unwrap()).unwrap();
        let source = vector["sources"]["sluicegate"]["address"].as_str().unwrap();
        assert!(
            vector["sinks"]
                .as_object()
                .unwrap()
                .values()
                .all(|sink| sink["acknowledgements"]["enabled"] == true)
        );
        let endpoint = config.vector.endpoints[0].to_string();
        if name == "overlays/sidecar" {
            assert_eq!(endpoint, format!("http://{source}"));
        } else {
            let service = named(&objects, "Service", "vector");
            assert_eq!(service["spec"]["clusterIP"], "None");
            let vectors = named(&objects, "StatefulSet", "vector");
            assert_eq!(service["spec"]["selector"], vectors["spec"]["template"]["metadata"]["labels"]);
            assert_eq!(endpoint, format!("http://vector:{}", service["spec"]["ports"][0]["port"]));
            assert!(source.ends_with(&format!(":{}", service["spec"]["ports"][0]["port"])));
        }
        if name == "overlays/daemonset" {
            assert!(objects.iter().all(|object| object["spec"]["type"] != "LoadBalancer"));
            continue;
        }
        let service = &named(&objects, "Service", "sluicegate")["spec"];
        assert_eq!(service["externalTrafficPolicy"], "Local");
        assert_eq!(service["selector"], gate["spec"]["template"]["metadata"]["labels"]);
        let port = json!({ "name": "syslog", "port": 514, "protocol": "UDP", "targetPort": "syslog" });
        assert_eq!(service["ports"], json!([port]));
    }
}

/// A new pod is ready before an old one goes, and what is evicted leaves one behind.
#[test]
fn the_port_is_never_unheard_behind_the_service() {
    for name in &OVERLAYS[..2] {
        let Some(objects) = shipped(name) else { return };
        let gate = &gate(&objects)["spec"];
        assert_eq!(gate["strategy"]["rollingUpdate"], json!({ "maxSurge": 1, "maxUnavailable": 0 }));
        let budget = &named(&objects, "PodDisruptionBudget", "sluicegate")["spec"];
        assert_eq!(budget["selector"], gate["selector"]);
        assert!(budget["minAvailable"].as_u64() < gate["replicas"].as_u64(), "a node could never be drained");
        assert!(budget["minAvailable"].as_u64() >= Some(1));
        let policy = &named(&objects, "NetworkPolicy", "sluicegate")["spec"];
        assert_eq!(policy["podSelector"], gate["selector"]);
        assert_eq!(policy["ingress"][0], json!({ "ports": [{ "port": "syslog", "protocol": "UDP" }] }));
    }
    let Some(objects) = shipped("overlays/daemonset") else { return };
    let gate = gate(&objects);
    let strategy = &gate["spec"]["updateStrategy"]["rollingUpdate"];
    assert_eq!(
        strategy,
        &json!({ "maxSurge": 1, "maxUnavailable": 0 }),
        "the new one takes over from the old one"
    );
    let config = configuration(&objects);
    assert!(
        config.takeover_path.is_some_and(|path| path.as_os_str() == "@sluicegate") && config.takeover_stay
    );
    assert!(list(container(pod(gate), "sluicegate"), "args").any(|arg| arg == "@sluicegate"));
    assert!(pod(gate)["dnsPolicy"] == "ClusterFirstWithHostNet", "or `vector` is no name");
}

/// In the sidecar pattern Vector is there before sluicegate and after it.
#[test]
fn vector_is_the_native_sidecar() {
    let Some(objects) = shipped("overlays/sidecar") else { return };
    let pod = pod(gate(&objects));
    let names = |key| list(pod, key).map(|container| container["name"].clone()).collect::<Vec<_>>();
    assert_eq!(
        (names("containers"), names("initContainers")),
        (vec![json!("sluicegate")], vec![json!("vector")])
    );
    let vector = container(pod, "vector");
    assert_eq!(vector["restartPolicy"], "Always");
    assert!(vector["startupProbe"].is_object(), "sluicegate starts when Vector listens");
    assert!(vector["readinessProbe"].is_null(), "an unready Vector must not send datagrams away");
}
