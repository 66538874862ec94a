//! A real Prometheus, and what it knows.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use super::process::Process;
use super::{free_tcp, program, require, wait_until};

pub struct Prometheus {
    address: SocketAddr,
    process: Process,
    _directory: TempDir,
}

impl Prometheus {
    /// One that is ready and scrapes these four times a second; none where there is no Prometheus.
    pub fn start(scraped: &[SocketAddr], rules: Option<&Path>) -> Option<Self> {
        let binary = program("prometheus");
        if !require(binary.is_some(), "Prometheus (.ci/tools)") {
            return None;
        }
        let (directory, address) = (tempfile::tempdir().unwrap(), free_tcp());
        let targets: Vec<_> = scraped.iter().map(ToString::to_string).collect();
        let config = json!({
            "global": { "scrape_interval": "250ms", "scrape_timeout": "250ms", "evaluation_interval": "250ms" },
            "rule_files": rules.into_iter().collect::<Vec<_>>(),
            "scrape_configs": [{ "job_name": "sluicegate", "static_configs": [{ "targets": targets }] }],
        });
        let file = directory.path().join("prometheus.yml"); // JSON is YAML too
        std::fs::write(&file, config.to_string()).unwrap();
        let mut command = Command::new(binary?);
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", directory.path().display()))
            .arg(format!("--web.listen-address={address}"));
        let mut process = Process::spawn(command);
        process.wait_for_log("Server is ready");
        Some(Self { address, process, _directory: directory })
    }

    /// The answer of its API; none where it says that something is wrong.
    pub fn api(&self, path: &str) -> Option<Json> {
        // HTTP/1.0: an answer in one piece, however long it is.
        let mut stream = TcpStream::connect(self.address).ok()?;
        write!(stream, "GET /api/v1/{path} HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let answer: Json = serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()?;
        (answer["status"] == "success").then(|| answer["data"].clone())
    }

    /// What an expression comes to.
    pub fn query(&self, expression: &str) -> Option<Vec<Json>> {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        self.api(&format!("query?query={encoded}"))?["result"].as_array().cloned()
    }

    /// A metric, all its samples added up; none while it has none.
    pub fn total(&self, name: &str) -> Option<f64> {
        self.query(&format!("sum({name})"))?.first()?["value"][1].as_str()?.parse().ok()
    }

    /// Waits until each of the targets has been scraped.
    pub fn wait_for(&self, targets: usize) {
        wait_until("it scrapes", || self.total("up") == Some(targets as f64));
    }

    pub fn stop(self) {
        self.process.stop();
    }
}
