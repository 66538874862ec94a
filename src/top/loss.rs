//! Where events are lost, in the order of their path.

use super::model::Model;
use super::status::{Host, Status};

/// One place of loss.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    /// Where.
    pub place: Place,
    /// What is lost since the start of sluicegate, or of the host where it is the host's; nothing when unknown.
    pub total: Option<u64>,
    /// What is lost in a second, over the last interval.
    pub rate: Option<f64>,
}

/// A place of loss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The kernel, before any socket: a core's backlog was full.
    Softnet,
    /// Our sockets.
    Socket,
    /// All of the host's UDP sockets, ours too.
    AllSockets,
    /// The kernel had no memory left for UDP.
    UdpMemory,
    /// Given up by sluicegate on purpose.
    Shed,
    /// Of that, for this reason.
    ShedBecause(String),
    /// Refused by Vector for good.
    Rejected,
}

impl Loss {
    /// True while more is lost.
    pub fn grows(&self) -> bool {
        self.rate.is_some_and(|rate| rate > 0.0)
    }

    fn of(model: &Model, place: Place, count: impl Fn(&Status) -> Option<u64>) -> Self {
        let total = model.status().and_then(&count);
        Self { place, total, rate: model.rate(count) }
    }
}

impl Place {
    /// True for what is counted over the whole host.
    pub fn is_hosts(&self) -> bool {
        matches!(self, Self::Softnet | Self::AllSockets | Self::UdpMemory)
    }
}

/// Every place, with what is lost there.
pub fn places(model: &Model) -> Vec<Loss> {
    let host = |place, count: fn(Host) -> u64| Loss::of(model, place, |status| status.host.map(count));
    let mut places = vec![
        host(Place::Softnet, |host| host.softnet_dropped),
        Loss::of(model, Place::Socket, |status| Some(status.kernel_drops)),
        host(Place::AllSockets, |host| host.udp_rcvbuf_errors),
        host(Place::UdpMemory, |host| host.udp_mem_errors),
        Loss::of(model, Place::Shed, |status| Some(status.shed)),
    ];
    let reasons = model.status().into_iter().flat_map(|status| status.shed_by_reason.keys());
    places.extend(reasons.map(|reason| {
        let count = |status: &Status| status.shed_by_reason.get(reason).copied();
        Loss::of(model, Place::ShedBecause(reason.clone()), count)
    }));
    places.push(Loss::of(model, Place::Rejected, |status| Some(status.rejected)));
    places
}
