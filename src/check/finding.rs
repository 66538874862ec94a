//! What was found, whatever it is about: a level, figures, what they mean, what mends it.

use serde::Serialize;

use bytesize::ByteSize;

/// How something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Ok,
    /// `run` does its work; something may still cost datagrams.
    Warn,
    /// `run` would not start, would not deliver, or would not do what the configuration asks for.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at, such as `receive_buffer`: a name that stays.
    pub id: &'static str,
    /// Which one, where there are several: a listener's address, an interface, an endpoint's URL, a key. Else empty.
    pub subject: String,
    /// How it stands.
    pub level: Level,
    /// What was found, with figures.
    pub found: String,
    /// What that means.
    pub means: String,
    /// What mends it: first the command or setting, then what else there is. Empty where all is well.
    pub mend: Vec<String>,
}

/// Everything that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The worst level among the findings.
    pub level: Level,
    /// Findings that have to be mended.
    pub fails: usize,
    /// Findings that should be.
    pub warnings: usize,
    /// In the order in which a datagram meets them.
    pub findings: Vec<Finding>,
}

impl Finding {
    pub(super) fn ok(
        id: &'static str,
        subject: impl ToString,
        found: impl Into<String>,
        means: impl Into<String>,
    ) -> Self {
        let (subject, found, means) = (subject.to_string(), found.into(), means.into());
        Self { id, subject, level: Level::Ok, found, means, mend: Vec::new() }
    }

    pub(super) fn warn<const N: usize>(self, mend: [String; N]) -> Self {
        Self { level: Level::Warn, mend: mend.into(), ..self }
    }

    pub(super) fn fail<const N: usize>(self, mend: [String; N]) -> Self {
        Self { level: Level::Fail, mend: mend.into(), ..self }
    }

    /// What was looked at, for a person.
    pub fn title(&self) -> String {
        let name = self.id.replace(['_', '.'], " ");
        if self.subject.is_empty() { name } else { format!("{name} {}", self.subject) }
    }
}

impl Report {
    /// The report that these findings make.
    pub fn new(findings: Vec<Finding>) -> Self {
        let count = |level| findings.iter().filter(|finding| finding.level == level).count();
        let level = findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok);
        Self { level, fails: count(Level::Fail), warnings: count(Level::Warn), findings }
    }
}

/// A kernel setting as the command that sets it, and as what keeps it over a restart.
pub(super) fn sysctl(name: &str, value: &str) -> [String; 2] {
    let file = format!("/etc/sysctl.d/90-{}.conf", name.rsplit('.').next().unwrap_or(name));
    let quoted = if value.contains(' ') { format!("'{value}'") } else { value.to_owned() };
    [
        format!("sysctl -w {name}={quoted}"),
        format!("to keep it: echo '{name} = {value}' > {file}; in a container, both on the node"),
    ]
}

/// Bytes for a person.
pub(super) fn size(bytes: u64) -> String {
    match ByteSize(bytes).display().iec().to_string() {
        text if text.contains(".0 ") => text.replace(".0 ", " "),
        text => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_finding_is_the_reports_level() {
        let ok = || Finding::ok("port", "[::]:5514", "free", "it can be bound");
        assert_eq!(ok().title(), "port [::]:5514");
        let report = Report::new(vec![ok(), ok().warn(["x".into()])]);
        assert_eq!((report.level, report.fails, report.warnings), (Level::Warn, 0, 1));
        let report = Report::new(vec![ok().fail(["x".into()]), ok().warn(["x".into()])]);
        assert_eq!((report.level, report.fails, report.warnings), (Level::Fail, 1, 1));
        assert_eq!(Report::new(Vec::new()).level, Level::Ok);
    }

    #[test]
    fn a_setting_with_several_numbers_is_quoted_for_the_shell() {
        let [set, keep] = sysctl("net.ipv4.udp_mem", "1 2 3");
        assert_eq!(set, "sysctl -w net.ipv4.udp_mem='1 2 3'");
        assert!(keep.contains("echo 'net.ipv4.udp_mem = 1 2 3' > /etc/sysctl.d/90-udp_mem.conf"), "{keep}");
    }

    #[test]
    fn sizes_are_short() {
        let all = [0, 212_992, 64 << 20, 3 << 29].map(size);
        assert_eq!(all, ["0 B", "208 KiB", "64 MiB", "1.5 GiB"]);
    }
}
