//! The one thing to know now, and what to do about it.

use super::loss::{Place, places};
use super::model::Model;
use super::status::{Queue, Snapshot, Status};
use crate::numbers::grouped;

/// A queue fuller than this is worth a word.
const FILLING: f64 = 0.5;

/// With more than what comes in within this many seconds, a second without an acknowledgement is no pause.
const STALLED: f64 = 5.0;

/// A queue fuller than this makes the workers wait, or shed.
const FULL: f64 = 0.9;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Nothing to do.
    Good,
    /// Nothing is known yet.
    Unknown,
    /// It may become bad.
    Warning,
    /// Events are lost, or nothing is seen.
    Bad,
}

/// The one thing to know now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// How bad it is.
    pub severity: Severity,
    /// A sentence.
    pub text: String,
}

fn verdict(severity: Severity, text: impl Into<String>) -> Verdict {
    Verdict { severity, text: text.into() }
}

/// Judges what is known: what cannot be seen first, then what is lost, then what may come.
pub fn judge(model: &Model) -> Verdict {
    if let Some((why, since)) = model.trouble() {
        let age = match model.status() {
            Some(_) => format!("For {} s: ", since.as_secs()),
            None => String::new(),
        };
        return verdict(Severity::Bad, format!("{age}{why} Trying on."));
    }
    let Some(snapshot) = model.latest() else {
        return verdict(Severity::Unknown, format!("Asking {} …", model.address));
    };
    let status = &snapshot.status;
    let coming = || ahead(status).or_else(|| stalled(model, status));
    let found = losing(model, snapshot).or_else(|| unwell(snapshot, coming())).or_else(coming);
    found.unwrap_or_else(|| calm(model, status))
}

/// What is being lost now: the place nearest to Vector first, since what it holds up overflows before it.
fn losing(model: &Model, snapshot: &Snapshot) -> Option<Verdict> {
    // An older sluicegate tells of its queue by not being ready.
    let queue = snapshot.status.queue.as_ref();
    let is_full = fill(queue) > FULL || (queue.is_none() && snapshot.ready.is_err());
    let hint = |place: &Place| match place {
        Place::Rejected => "Vector refuses events for good: see its log",
        Place::ShedBecause(reason) => match reason.as_str() {
            "queue_full" => "shedding (queue_full): Vector takes less than what comes in",
            "too_long" => "shedding (too_long): datagrams longer than --max-length",
            "parse_error" => "shedding (parse_error): --on-error drop gives up what does not parse",
            "program" => "shedding (program): the VRL program aborts, or makes nothing",
            "internal" => "shedding (internal): a worker panicked, see the log",
            _ => "shedding: see the reasons below",
        },
        Place::Socket if is_full => {
            "sockets overflow as the queue is full: Vector takes less than what comes in"
        }
        Place::Socket => "sockets overflow: raise --receive-buffer-bytes and net.core.rmem_max",
        Place::UdpMemory => "the kernel has no memory left for UDP: raise net.ipv4.udp_mem",
        Place::Softnet => "the kernel's backlog overflows: raise net.core.netdev_max_backlog",
        // Either our sockets', which have a line of their own, or another program's.
        Place::AllSockets | Place::Shed => "",
    };
    let growing = places(model).into_iter().rev().filter(|loss| loss.grows());
    let mut hints = growing.map(|loss| hint(&loss.place)).filter(|hint| !hint.is_empty());
    hints.next().map(|hint| verdict(Severity::Bad, format!("LOSING: {hint}")))
}

/// What the probes are told, and its likely cause.
fn unwell(snapshot: &Snapshot, coming: Option<Verdict>) -> Option<Verdict> {
    match (&snapshot.live, &snapshot.ready) {
        (Err(why), _) => Some(verdict(Severity::Bad, format!("Not live: {why}"))),
        (_, Err(why)) => {
            let cause = coming.map_or_else(String::new, |coming| format!(". {}", coming.text));
            Some(verdict(Severity::Warning, format!("Not ready: {why}{cause}")))
        }
        _ => None,
    }
}

/// What may become loss.
fn ahead(status: &Status) -> Option<Verdict> {
    let endpoints = status.endpoints.as_deref().unwrap_or_default();
    let down: Vec<_> = endpoints.iter().filter(|endpoint| endpoint.connected == 0).collect();
    let fills = fill(status.queue.as_ref()) > FILLING;
    let text = match &down[..] {
        [] if fills => "The queue fills: Vector takes less than what comes in".to_owned(),
        [] => return None,
        all if all.len() == endpoints.len() => {
            "No Vector is connected: events wait in the queue; nothing is lost until it is full".to_owned()
        }
        [one, ..] if fills => format!("The queue fills: {} is not connected", one.endpoint),
        [one, ..] => format!("{} is not connected; the others take its share", one.endpoint),
    };
    Some(verdict(Severity::Warning, text))
}

fn stalled(model: &Model, status: &Status) -> Option<Verdict> {
    let rates = model.rates()?;
    let stalled = rates.delivered == 0.0 && status.in_memory as f64 > rates.received.max(1.0) * STALLED;
    let text = || format!("Vector acknowledges nothing: {} events wait", grouped(status.in_memory));
    stalled.then(|| verdict(Severity::Warning, text()))
}

fn calm(model: &Model, status: &Status) -> Verdict {
    let Some(rates) = model.rates() else {
        let text = match model.restarts {
            0 => "Measuring …",
            _ => "It was started again: its counters begin at zero",
        };
        return verdict(Severity::Unknown, text);
    };
    let lost = status.kernel_drops + status.shed + status.rejected;
    let text = match (lost, rates.received > 0.0) {
        (0, true) => "Nothing is lost",
        (0, false) => "Nothing is lost; nothing comes in",
        (_, true) => "Nothing is lost now; earlier losses are below",
        (_, false) => "Nothing is lost now, nothing comes in; earlier losses are below",
    };
    verdict(Severity::Good, text)
}

/// How full the queue is, 0 to 1.
pub fn fill(queue: Option<&Queue>) -> f64 {
    queue
        .filter(|queue| queue.limit_bytes > 0)
        .map_or(0.0, |queue| (queue.waiting_bytes as f64 / queue.limit_bytes as f64).clamp(0.0, 1.0))
}
