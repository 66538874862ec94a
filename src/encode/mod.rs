//! Datagram to wire bytes: `PushEventsRequest.events`, written straight into the open batch.
//!
//! In: a borrowed [`Datagram`](crate::datagram::Datagram). Out: the bytes of one `EventWrapper` field,
//! appended. Nothing can be lost here, and nothing that a sender controls becomes a map key.

mod log;
mod socket_event;
pub mod wire;

pub use log::LogWriter;
pub use socket_event::SocketEncoder;

/// No event is longer than its datagram and this many bytes: keys, host, port, timestamp and lengths.
pub const MAX_EVENT_OVERHEAD: usize = 512;
