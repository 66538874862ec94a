//! Datagrams off the wire: the sockets of a `SO_REUSEPORT` group, and as many threads as the load needs to read them.
//!
//! In: a [`Listener`](crate::config::Listener). Out: batches, pushed to the [`Queue`](crate::queue::Queue).
//! What can be lost: what the kernel drops when a socket's buffer is full (counted there, read with
//! [`Group::memory`]), and, by choice, what is longer than `max_length`, meets a full queue, or comes from somebody who may
//! not send, or not so much.

mod bell;
mod claim;
mod crew;
mod discard;
mod gate;
mod group;
mod inherited;
mod limit;
mod member;
mod pace;
mod roster;
mod steering;
mod stop;
mod trial;
mod worker;

pub use claim::Claim;
pub use crew::Crew;
pub use discard::Discard;
pub use gate::{Gate, Rules};
pub use group::{BindError, Group};
pub use inherited::{Inherited, address_of};
pub use limit::Limiter;
pub use member::Member;
pub use pace::{Pace, Step};
pub use roster::Roster;
pub use steering::program;
pub use stop::Stop;
pub use trial::{Trial, try_steering};
pub use worker::{Reader, Worker};

/// Datagrams that one `recvmmsg` can take.
pub const DEPTH: usize = 128;
