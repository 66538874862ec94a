//! `sluicegate parse`: what becomes of a device's messages, without a network.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::DateTime;
use prost::Message;
use serde_json::{Value as Json, json};

use super::Failure;
use super::flags::{Flags, Parsing};
use crate::datagram::{Datagram, Timestamp};
use crate::parse::EventMaker;
use crate::proto::vector::PushEventsRequest;
use crate::receiver::event_to_json;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    flags: Flags<Parsing>,
    /// When the datagrams are received [default: now]
    #[arg(long, value_name = "RFC3339", value_parser = time)]
    now: Option<Timestamp>,
    /// Who sent them
    #[arg(long, value_name = "IP[:PORT]", default_value = "127.0.0.1:514", value_parser = peer)]
    peer: SocketAddr,
    /// Each line of input is an object with `datagram_base64` and perhaps `id`; each of output has `id` and `events`
    #[arg(long)]
    jsonl: bool,
    /// Files with a datagram a line [default: standard input]
    files: Vec<PathBuf>,
}

fn time(text: &str) -> Result<Timestamp, String> {
    let invalid = |_| format!("`{text}` is no time: write one such as 2026-10-11T22:14:15Z");
    DateTime::parse_from_rfc3339(text).map(|time| Timestamp::from(&time)).map_err(invalid)
}

fn peer(text: &str) -> Result<SocketAddr, String> {
    let with_port = |ip: IpAddr| SocketAddr::new(ip, 514);
    let invalid = |_| format!("`{text}` is no peer: write IP or IP:PORT");
    text.parse().or_else(|_| text.parse().map(with_port)).map_err(invalid)
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let mut maker = EventMaker::new(&args.flags.parse_options()?);
    let mut out = BufWriter::new(io::stdout().lock());
    let mut feed = |name: &str, input: &mut dyn BufRead| -> Result<(), Failure> {
        let mut line = Vec::new();
        for number in 1u64.. {
            line.clear();
            let failed = |error: io::Error| Failure::failed(format!("{name}, line {number}: {error}"));
            if input.read_until(b'\n', &mut line).map_err(failed)? == 0 {
                return Ok(());
            }
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            show(args, &mut maker, text, &mut out).map_err(failed)?;
        }
        Ok(())
    };
    if args.files.is_empty() {
        feed("standard input", &mut io::stdin().lock())?;
    }
    for path in &args.files {
        let name = path.display().to_string();
        let file =
            File::open(path).map_err(|error| Failure::failed(format!("cannot read {name}: {error}")))?;
        feed(&name, &mut BufReader::new(file))?;
    }
    out.flush().map_err(|error| Failure::failed(format!("cannot write to stdout: {error}")))
}

fn show(args: &Args, maker: &mut EventMaker, line: &[u8], out: &mut impl Write) -> io::Result<()> {
    if !args.jsonl {
        for event in events(args, maker, line)? {
            writeln!(out, "{event}")?;
        }
        return Ok(());
    }
    if line.trim_ascii().is_empty() {
        return Ok(());
    }
    let input: Json = serde_json::from_slice(line)?;
    let encoded = input["datagram_base64"].as_str();
    let encoded = encoded.ok_or_else(|| io::Error::other("the object has no `datagram_base64`"))?;
    let datagram = BASE64_STANDARD.decode(encoded).map_err(io::Error::other)?;
    writeln!(out, "{}", json!({ "id": input["id"], "events": events(args, maker, &datagram)? }))
}

/// The events of one datagram, by the way that the sidecar and Vector take: encoded, decoded, shown. An empty datagram
/// has none.
fn events(args: &Args, maker: &mut EventMaker, payload: &[u8]) -> io::Result<Vec<Json>> {
    if payload.is_empty() {
        return Ok(Vec::new());
    }
    let received = args.now.unwrap_or_else(Timestamp::now);
    let datagram = Datagram { payload, peer: args.peer, received: None, truncated: false };
    let mut events = Vec::new();
    maker.make(&datagram, received, &mut events);
    let request = PushEventsRequest::decode(&events[..]).map_err(io::Error::other)?;
    Ok(request.events.iter().map(event_to_json).collect())
}
