//! Kubernetes' manifests as `kubectl kustomize` renders them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value as Json, json};

use super::{program, repository, require};

/// The overlays with sluicegate in them.
pub const OVERLAYS: [&str; 3] = ["overlays/sidecar", "overlays/aggregator", "overlays/daemonset"];

/// What became of a kustomization: its text, and its objects. None where there is no kubectl.
pub fn rendered(folder: &Path) -> Option<(String, Vec<Json>)> {
    let kubectl = program("kubectl");
    if !require(kubectl.is_some(), "kubectl (.ci/tools)") {
        return None;
    }
    let output = Command::new(kubectl?).arg("kustomize").arg(folder).output().unwrap();
    assert!(output.status.success(), "{}: {}", folder.display(), String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr)); // deprecations
    let text = String::from_utf8(output.stdout).unwrap();
    let objects = serde_saphyr::from_multiple(&text).unwrap();
    Some((text, objects))
}

/// One of the repository's.
pub fn shipped(name: &str) -> Option<Vec<Json>> {
    rendered(&repository("k8s").join(name)).map(|(_, objects)| objects)
}

/// A folder of the repository as seen from another one: kustomize takes no absolute paths.
pub fn relative(from: &Path, name: &str) -> PathBuf {
    let up: PathBuf = from.canonicalize().unwrap().components().skip(1).map(|_| "..").collect();
    let to = repository("k8s").join(name).canonicalize().unwrap();
    up.join(to.strip_prefix("/").unwrap())
}

pub fn named<'a>(objects: &'a [Json], kind: &str, name: &str) -> &'a Json {
    let is_it = |object: &&Json| object["kind"] == kind && object["metadata"]["name"] == name;
    objects.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} {name}"))
}

/// Every object with a pod template.
pub fn workloads(objects: &[Json]) -> impl Iterator<Item = &Json> {
    objects.iter().filter(|object| object["spec"]["template"].is_object())
}

/// The workload that runs sluicegate.
pub fn gate(objects: &[Json]) -> &Json {
    workloads(objects).find(|object| object["metadata"]["name"] == "sluicegate").unwrap()
}

pub fn pod(workload: &Json) -> &Json {
    &workload["spec"]["template"]["spec"]
}

pub fn list<'a>(of: &'a Json, key: &str) -> impl Iterator<Item = &'a Json> + use<'a> {
    of[key].as_array().into_iter().flatten()
}

pub fn container<'a>(pod: &'a Json, name: &str) -> &'a Json {
    all_containers(pod).find(|container| container["name"] == name).unwrap()
}

pub fn all_containers(pod: &Json) -> impl Iterator<Item = &Json> {
    list(pod, "containers").chain(list(pod, "initContainers"))
}

/// A quantity of memory, bytes.
pub fn bytes(quantity: &Json) -> u64 {
    let text = quantity.as_str().unwrap();
    let (number, shift) =
        [("Gi", 30), ("Mi", 20)].iter().find_map(|(unit, s)| Some((text.strip_suffix(unit)?, s))).unwrap();
    number.parse::<u64>().unwrap() << shift
}

/// What the profile "restricted" of the Pod Security Standards forbids in a pod, in words
/// (kubernetes.io/docs/concepts/security/pod-security-standards), and a writable root besides.
pub fn breaches(pod: &Json) -> Vec<String> {
    let mut found = Vec::new();
    let mut that = |right: bool, what: String| {
        if !right {
            found.push(what);
        }
    };
    for host in ["hostNetwork", "hostPID", "hostIPC"] {
        that(pod[host].as_bool() != Some(true), host.to_owned());
    }
    let of_pod = &pod["securityContext"];
    that(
        of_pod["sysctls"].is_null() && of_pod["seLinuxOptions"].is_null(),
        "sysctls or SELinux options".into(),
    );
    let volumes = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    for volume in list(pod, "volumes") {
        let kind = volume.as_object().unwrap().keys().find(|key| *key != "name").unwrap();
        that(volumes.contains(&kind.as_str()), format!("a volume of kind {kind}"));
    }
    for container in all_containers(pod) {
        let (name, own) = (&container["name"], &container["securityContext"]);
        let either = |key: &str| if own[key].is_null() { &of_pod[key] } else { &own[key] };
        that(own["privileged"].as_bool() != Some(true), format!("{name}: privileged"));
        that(own["allowPrivilegeEscalation"] == false, format!("{name}: allowPrivilegeEscalation"));
        that(own["readOnlyRootFilesystem"] == true, format!("{name}: a writable root"));
        that(own["capabilities"] == json!({ "drop": ["ALL"] }), format!("{name}: capabilities"));
        that(own["procMount"].is_null(), format!("{name}: procMount"));
        that(either("runAsNonRoot") == true, format!("{name}: runAsNonRoot"));
        that(either("runAsUser").as_u64().is_some_and(|user| user > 0), format!("{name}: runAsUser"));
        that(either("seccompProfile")["type"] == "RuntimeDefault", format!("{name}: seccomp"));
        that(list(container, "ports").all(|port| port["hostPort"].is_null()), format!("{name}: hostPort"));
    }
    found
}
