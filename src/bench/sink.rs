//! Where a pipeline ends: a counter of our own or, where `VECTOR_BIN` names one, a real Vector.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::{env, fs};

use super::{Cost, Offer, Stage, StageError, free_tcp, number};

/// A running sink.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) name: &'static str,
    pub(super) address: String,
    stage: Stage,
    /// Where a Vector's metrics are, and its directory.
    vector: Option<(String, PathBuf)>,
}

impl Sink {
    /// One that speaks Vector's protocol.
    pub(super) fn grpc(offer: &Offer) -> Result<Self, StageError> {
        Self::start(offer, "count-events", "vector", "type = \"vector\"\nversion = \"2\"")
    }

    /// One that takes lines over TCP, as Vector's `socket` source does.
    pub(super) fn lines(offer: &Offer) -> Result<Self, StageError> {
        Self::start(offer, "count-lines", "vector socket", "type = \"socket\"\nmode = \"tcp\"")
    }

    fn start(
        offer: &Offer,
        ours: &'static str,
        theirs: &'static str,
        source: &str,
    ) -> Result<Self, StageError> {
        let address = free_tcp()?;
        let pin = offer.pins.sink.as_deref();
        let mut sink = match env::var_os("VECTOR_BIN") {
            Some(vector) => Self::vector(&vector, theirs, address, source, pin)?,
            None => {
                let stage = Stage::start(ours, &[ours, &address], pin)?;
                Self { name: ours, stage, vector: None, address }
            }
        };
        sink.stage.wait_for_tcp(&sink.address)?;
        Ok(sink)
    }

    /// A Vector with this source and a `blackhole`, whose own metrics tell what arrived.
    fn vector(
        program: &OsString,
        name: &'static str,
        address: String,
        source: &str,
        pin: Option<&str>,
    ) -> Result<Self, StageError> {
        let (metrics, directory) =
            (free_tcp()?, env::temp_dir().join(format!("sluicegate-bench-{}", std::process::id())));
        fs::create_dir_all(&directory)?;
        let config = directory.join("vector.toml");
        let text = format!(
            "data_dir = {directory:?}\n[sources.in]\n{source}\naddress = \"{address}\"\n[sources.own]\ntype = \"internal_metrics\"\n\
             scrape_interval_secs = 1\n[sinks.out]\ntype = \"blackhole\"\ninputs = [\"in\"]\n\
             [sinks.metrics]\ntype = \"prometheus_exporter\"\ninputs = [\"own\"]\naddress = \"{metrics}\"\n"
        );
        fs::write(&config, text)?;
        let arguments = ["--quiet", "--config", &config.to_string_lossy()].map(str::to_owned);
        let stage = Stage::program("vector", Path::new(program), &arguments, pin)?;
        Ok(Self { name, address, stage, vector: Some((metrics, directory)) })
    }

    /// Stops it: how many datagrams arrived, and what they cost.
    pub(super) fn stop(mut self, datagrams: u64) -> Result<(u64, Cost), StageError> {
        let Some((metrics, directory)) = &self.vector else {
            let (cost, last) = self.stage.stop(datagrams)?;
            let arrived = last["unique"].as_u64().unwrap_or_else(|| number(&last, "events"));
            return Ok((arrived, cost));
        };
        self.stage.wait_until_idle()?;
        let arrived = arrived(&scrape(metrics)?);
        let (cost, _) = self.stage.stop(datagrams)?;
        fs::remove_dir_all(directory)?;
        Ok((arrived, cost))
    }
}

fn scrape(address: &str) -> Result<String, StageError> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// What the source named `in` says that it received.
fn arrived(metrics: &str) -> u64 {
    let of_source = |line: &&str| {
        line.starts_with("vector_component_received_events_total{") && line.contains("component_id=\"in\"")
    };
    let value = |line: &str| line.split("} ").nth(1)?.split(' ').next()?.parse::<f64>().ok();
    metrics.lines().filter(of_source).filter_map(value).sum::<f64>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_own_count_is_found() {
        let metrics = "# HELP x\n\
            vector_component_received_events_total{component_id=\"own\",host=\"h\"} 12 1700000000\n\
            vector_component_received_events_total{component_id=\"in\",host=\"h\",mode=\"tcp\"} 1000 1700000000\n\
            vector_component_received_events_total{component_id=\"in\",mode=\"udp\"} 2.5e3\n\
            vector_component_sent_events_total{component_id=\"in\"} 9\n";
        assert_eq!(arrived(metrics), 3_500);
    }
}
