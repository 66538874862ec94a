//! What the admin port says.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Status and body of a GET, as curl would see them.
pub fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Samples by name and labels.
pub fn samples(text: &str) -> BTreeMap<String, f64> {
    let sample =
        |line: &str| line.rsplit_once(' ').map(|(name, value)| (name.to_owned(), value.parse().unwrap()));
    text.lines().filter(|line| !line.starts_with('#')).filter_map(sample).collect()
}

pub fn total(samples: &BTreeMap<String, f64>, name: &str) -> f64 {
    samples.iter().filter(|(key, _)| key.split('{').next() == Some(name)).map(|(_, value)| value).sum()
}

/// The total of a metric, over all labels or, with them in the name, of one sample.
pub fn counter(address: SocketAddr, name: &str) -> f64 {
    let samples = samples(&get(address, "/metrics").1);
    samples.get(name).copied().unwrap_or_else(|| total(&samples, name))
}
