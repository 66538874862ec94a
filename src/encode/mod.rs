//! Events to wire bytes: `PushEventsRequest.events`, written straight into the open batch.
//!
//! In: a borrowed [`Datagram`](crate::datagram::Datagram) and what was found in it. Out: the bytes of one
//! `EventWrapper` field, appended. Nothing can be lost here, and every map key is UTF-8: Vector refuses the whole
//! request otherwise.

mod log;
mod sequence;
mod shape;
mod socket_event;
mod syslog_event;
mod value;
pub mod wire;

pub use log::LogWriter;
pub use sequence::Sequence;
pub use shape::Shape;
pub use socket_event::SocketEncoder;
pub use syslog_event::SyslogEncoder;
pub use value::encode_value;

/// The raw event is no longer than its datagram and this many bytes: keys, host, port, timestamp, sequence and lengths.
pub const MAX_EVENT_OVERHEAD: usize = 512;
