//! What a message turned out to hold: borrowed parts, ready for the wire.

use syslog_loose::{ProcId, StructuredElement, SyslogFacility, SyslogSeverity};

use crate::datagram::Timestamp;

/// The parts of one syslog message. What it does not state is none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parts<'a> {
    /// Facility of a valid PRI, which Vector names.
    pub facility: Option<SyslogFacility>,
    /// Severity, as Vector names it.
    pub severity: Option<SyslogSeverity>,
    /// Version of an RFC 5424 header.
    pub version: Option<u32>,
    /// The device's time.
    pub timestamp: Option<Timestamp>,
    /// The device's name for itself.
    pub hostname: Option<&'a str>,
    /// The program.
    pub appname: Option<&'a str>,
    /// The process.
    pub procid: Option<ProcId<&'a str>>,
    /// The kind of message.
    pub msgid: Option<&'a str>,
    /// RFC 5424 structured data.
    pub structured_data: Vec<StructuredElement<&'a str>>,
    /// What a vendor's header holds beside these: sequence numbers, uptime, node.
    pub header: Option<&'a str>,
    /// The rest: the datagram less exactly what became one of the above.
    pub message: &'a [u8],
    /// Why it is no syslog message; none when it is one.
    pub error: Option<ParseError>,
}

impl<'a> Parts<'a> {
    /// The parts that are texts, each with the name that Vector gives it.
    pub fn texts(&self) -> [(&'static str, Option<&'a str>); 6] {
        [
            ("hostname", self.hostname),
            ("severity", self.severity.map(SyslogSeverity::as_str)),
            ("facility", self.facility.map(SyslogFacility::as_str)),
            ("appname", self.appname),
            ("msgid", self.msgid),
            ("header", self.header),
        ]
    }
}

/// Why a datagram is no syslog message; a closed set, fit for a metric's label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseError {
    /// White space and NULs only.
    Blank,
    /// A byte order mark or an octet count before the PRI.
    Framing,
    /// The PRI is no number from 0 to 191, or is not closed.
    Priority,
    /// No date where one has to be, or one that RFC 3164 and RFC 5424 do not know.
    Timestamp,
    /// The header of RFC 5424 is not complete.
    Header,
    /// Nothing of a syslog header was recognised.
    Unknown,
    /// The VRL program failed.
    Program,
    /// A bug in a parser; the message is whole.
    Internal,
}

impl ParseError {
    /// Every reason.
    pub const ALL: [Self; 8] = [
        Self::Blank,
        Self::Framing,
        Self::Priority,
        Self::Timestamp,
        Self::Header,
        Self::Unknown,
        Self::Program,
        Self::Internal,
    ];

    /// The reason's name, in events, reports and metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Blank => "blank",
            Self::Framing => "framing",
            Self::Priority => "priority",
            Self::Timestamp => "timestamp",
            Self::Header => "header",
            Self::Unknown => "unknown",
            Self::Program => "program",
            Self::Internal => "internal",
        }
    }
}
