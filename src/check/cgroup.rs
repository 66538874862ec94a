//! What the control groups of this process allow it (cgroups(7)): version 2, version 1, and both at once.

use std::path::{Path, PathBuf};

use super::kernel::{number, text};

/// The tightest limits among a process's groups and those above; none where there is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Limits {
    /// Memory, bytes.
    pub(super) memory: Option<u64>,
    /// CPU time, in cores.
    pub(super) cores: Option<f64>,
}

/// Version 1 writes "no limit" as a number near 2^63.
const UNLIMITED: u64 = 1 << 60;

impl Limits {
    pub(super) fn read() -> Self {
        let read = |path| text(path).unwrap_or_default();
        let (mounts, groups) = (read("/proc/self/mountinfo"), read("/proc/self/cgroup"));
        let memory = directories(&mounts, &groups, "memory");
        let cores = directories(&mounts, &groups, "cpu");
        Self {
            memory: memory.iter().filter_map(|directory| memory_limit(directory)).min(),
            cores: cores.iter().filter_map(|directory| core_limit(directory)).min_by(f64::total_cmp),
        }
    }
}

fn memory_limit(directory: &Path) -> Option<u64> {
    let version_2 = number(directory.join("memory.max"));
    version_2.or_else(|| number(directory.join("memory.limit_in_bytes"))).filter(|limit| *limit < UNLIMITED)
}

fn core_limit(directory: &Path) -> Option<f64> {
    if let Some(limit) = text(directory.join("cpu.max")) {
        return quota(&limit);
    }
    let part = |name: &str| text(directory.join(name));
    quota(&format!("{} {}", part("cpu.cfs_quota_us")?.trim(), part("cpu.cfs_period_us")?))
}

/// `50000 100000` is half a core; `max` or -1 is no limit.
fn quota(text: &str) -> Option<f64> {
    let mut numbers = text.split_whitespace().map_while(|number| number.parse::<f64>().ok());
    let (quota, period) = (numbers.next()?, numbers.next()?);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

/// The directories of the groups that this process is in, up to where they are mounted.
fn directories(mounts: &str, groups: &str, controller: &str) -> Vec<PathBuf> {
    let has = |list: &str| list.split(',').any(|name| name == controller);
    let group = |line: &str| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?.to_owned(), parts.next()?.to_owned());
        Some((controllers, path))
    };
    let mut found = Vec::new();
    for line in mounts.lines() {
        // proc_pid_mountinfo(5): root and mount point are the 4th and 5th field; type and options come behind the dash.
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let mut before = before.split(' ').skip(3);
        let (Some(root), Some(point)) = (before.next(), before.next()) else { continue };
        let mut after = after.split(' ');
        let (kind, options) = (after.next().unwrap_or_default(), after.nth(1).unwrap_or_default());
        let is_ours = |controllers: &str| match kind {
            "cgroup2" => controllers.is_empty(),
            "cgroup" => has(options) && has(controllers),
            _ => false,
        };
        let path = groups.lines().filter_map(group).find(|(controllers, _)| is_ours(controllers));
        let Some((_, path)) = path else { continue };
        // In a container the group's own directory may be what is mounted: then only that is seen.
        let below = Path::new(&path).strip_prefix(root).unwrap_or(Path::new(""));
        let whole: PathBuf = [Path::new(point), below].iter().flat_map(|path| path.components()).collect();
        found.extend(whole.ancestors().take_while(|path| path.starts_with(point)).map(Path::to_path_buf));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(mounts: &str, groups: &str, controller: &str) -> Vec<String> {
        directories(mounts, groups, controller).iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn groups_of_both_versions_are_found_up_to_their_mount() {
        let mounts = "22 1 0:5 / /proc rw - proc proc rw\n\
                      35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
        let groups = "4:memory:/a/b\n1:cpu,cpuacct:/\n0::/\n";
        let memory = paths(mounts, groups, "memory");
        assert_eq!(memory, ["/sys/fs/cgroup/memory/a/b", "/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/memory"]);
        assert_eq!(paths(mounts, groups, "cpu"), ["/sys/fs/cgroup/cpu"]);
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let groups = "0::/kubepods/pod1\n";
        assert_eq!(
            paths(mounts, groups, "memory"),
            ["/sys/fs/cgroup/kubepods/pod1", "/sys/fs/cgroup/kubepods", "/sys/fs/cgroup"]
        );
    }

    #[test]
    fn a_containers_own_mount_is_its_group() {
        let mounts = "35 31 0:32 /docker/x /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        assert_eq!(paths(mounts, "4:memory:/docker/x\n", "memory"), ["/sys/fs/cgroup/memory"]);
        assert_eq!(paths(mounts, "4:memory:/elsewhere\n", "memory"), ["/sys/fs/cgroup/memory"]);
        assert!(paths(mounts, "", "memory").is_empty() && paths("", "0::/\n", "memory").is_empty());
    }

    #[test]
    fn quotas_are_in_cores() {
        assert_eq!(quota("50000 100000\n"), Some(0.5));
        assert_eq!(quota("max 100000\n"), None);
        assert_eq!(quota("-1 100000"), None);
        assert_eq!(quota(""), None);
    }

    #[test]
    fn limits_are_read_from_files_of_both_versions() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("memory.limit_in_bytes", "9223372036854771712\n");
        write("cpu.cfs_quota_us", "150000\n");
        write("cpu.cfs_period_us", "100000\n");
        assert_eq!((memory_limit(directory.path()), core_limit(directory.path())), (None, Some(1.5)));
        write("memory.max", "1048576\n");
        write("cpu.max", "max 100000\n");
        assert_eq!((memory_limit(directory.path()), core_limit(directory.path())), (Some(1 << 20), None));
    }
}
