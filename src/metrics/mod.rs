//! The books and gauges as Prometheus text (exposition format 0.0.4), and as Vector's own metric events.
//!
//! In: a [`Snapshot`], taken when somebody asks. Out: text, or events. The hot path knows nothing of it: it counts in the
//! workers' plain integers, which the snapshot reads.

mod host;
pub mod names;
mod native;
mod text;

pub use host::HostCounters;
pub(crate) use host::resident_bytes;
pub use native::encode;
pub use text::render;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::books::{Books, Count, EndpointReport};
use crate::config::Config;
use crate::queue::Levels;
use crate::socket::options::GrantedBuffer;

/// Everything that the metrics are made from, at one moment.
#[derive(Debug)]
pub struct Snapshot<'a> {
    /// The books.
    pub books: &'a Books,
    /// Each worker's totals, in the order of the desks.
    pub counts: Vec<Count>,
    /// Each endpoint's state.
    pub endpoints: Vec<EndpointReport>,
    /// What the queue holds.
    pub levels: Levels,
    /// The configuration in force.
    pub config: &'a Config,
    /// Each listener's receive buffers.
    pub buffers: &'a [GrantedBuffer],
    /// The host's own counters of loss.
    pub host: HostCounters,
    /// CPU time of the process, seconds.
    pub cpu_seconds: f64,
    /// Resident memory of the process, bytes.
    pub resident_bytes: u64,
}

/// One sample: the values of its labels, in the order of their names, and its value.
pub type Sample = (Vec<String>, f64);

fn get(cell: &AtomicU64) -> f64 {
    cell.load(Relaxed) as f64
}
