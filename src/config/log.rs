//! What is logged, and how.

/// What is logged, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Log {
    /// The least grave lines that are logged.
    pub level: LogLevel,
    /// How a line looks.
    pub format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: LogLevel::Info, format: LogFormat::Auto }
    }
}

/// How grave a log line is; Vector's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// What only a developer wants.
    Trace,
    /// What helps to find a fault.
    Debug,
    /// What is worth knowing.
    Info,
    /// What may need somebody.
    Warn,
    /// What needs somebody.
    Error,
    /// Nothing at all.
    Off,
}

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people on a terminal, JSON elsewhere.
    Auto,
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
