//! Whether what overflows memory can be kept on disk.

use std::path::{Path, PathBuf};

use bytesize::ByteSize;
use rustix::fs::{Access, access, statvfs};

use super::finding::Finding;
use crate::config::{Config, WhenFull};

/// What is known of `data_dir`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) directory: PathBuf,
    /// Bytes that batches may take.
    pub(super) asked: u64,
    /// Bytes that are free there for this process, or why nothing can be written there.
    pub(super) free: Result<u64, String>,
}

impl Facts {
    /// None where nothing is to be kept on disk. Makes no directory.
    pub(super) fn read(config: &Config) -> Option<Self> {
        if config.buffer.when_full != WhenFull::Overflow {
            return None;
        }
        let directory = config.data_dir.clone();
        // `run` makes what is missing of it.
        let there = directory.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
        let writable = access(there, Access::WRITE_OK | Access::EXEC_OK);
        let free = writable.and_then(|()| statvfs(there)).map(|disk| disk.f_bavail * disk.f_frsize);
        let free = free.map_err(|error| format!("{}: {error}", there.display()));
        Some(Self { directory, asked: config.buffer.max_disk_bytes as u64, free })
    }
}

pub(super) fn judge(facts: &Facts) -> Finding {
    let Facts { directory, asked, free } = facts;
    let directory = directory.display();
    let size = |bytes: u64| ByteSize::b(bytes).display().iec();
    let found = |found: String, means: &str| Finding::ok("data_dir", directory.to_string(), found, means);
    match free {
        Err(error) => found(error.clone(), "`run` would not start: it has nowhere to keep what overflows")
            .fail([
                format!("mkdir -p {directory} && chown $(id -u) {directory}"),
                "or name another: --data-dir".to_owned(),
            ]),
        Ok(free) if free < asked => found(
            format!("{} free, {} asked", size(*free), size(*asked)),
            "the disk would be full before the limit is reached: events are shed then",
        )
        .warn([format!("--buffer-max-disk-bytes {}", free / 2), "or a larger disk".to_owned()]),
        Ok(free) => found(format!("{} free, {} asked", size(*free), size(*asked)), "what overflows has room"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_disk_has_room_too_little_or_none_for_us() {
        let judge = |free| judge(&Facts { directory: "/var/lib/x".into(), asked: 1 << 30, free });
        assert_eq!(judge(Ok(2 << 30)).level, Level::Ok);
        let small = judge(Ok(1 << 20));
        assert_eq!((small.level, small.mend[0].as_str()), (Level::Warn, "--buffer-max-disk-bytes 524288"));
        let closed = judge(Err("/var: Read-only file system".to_owned()));
        assert!(closed.level == Level::Fail && closed.mend[0].contains("/var/lib/x"), "{closed:?}");
    }

    #[test]
    fn looked_at_only_where_it_is_used_and_left_as_it_is() {
        let mut config = Config::default();
        assert_eq!(Facts::read(&config), None);
        let directory = tempfile::tempdir().unwrap();
        config.buffer.when_full = WhenFull::Overflow;
        config.data_dir = directory.path().join("a/b");
        assert!(Facts::read(&config).unwrap().free.unwrap() > 0);
        assert!(!directory.path().join("a").exists());
    }
}
