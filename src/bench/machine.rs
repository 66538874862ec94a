//! The machine that a figure was measured on: a figure without it says nothing.

use std::fs;

use serde::Serialize;

use crate::config::usable_cores;

/// What a reader needs to know to compare.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// Processor, as it names itself.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Kernel release.
    pub kernel: String,
    /// Memory, KiB.
    pub memory_kib: u64,
    /// `net.core.rmem_max`, bytes.
    pub rmem_max: u64,
    /// This program's version.
    pub sluicegate: &'static str,
}

impl Machine {
    /// This machine, as /proc describes it; what it does not tell is empty or zero.
    pub fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
        Self {
            cpu: field(&read("/proc/cpuinfo"), "model name").unwrap_or_default(),
            cores: usable_cores(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            memory_kib: memory.split(' ').next().and_then(|kib| kib.parse().ok()).unwrap_or_default(),
            rmem_max: read("/proc/sys/net/core/rmem_max").trim().parse().unwrap_or_default(),
            sluicegate: env!("CARGO_PKG_VERSION"),
        }
    }
}
