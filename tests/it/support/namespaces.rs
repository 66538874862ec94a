//! Hosts of a test: network namespaces around one that routes between them (ip-netns(8)).

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use super::{is_root, program, require};

/// Tests run side by side, each with its own.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Namespaces that are gone with it.
pub struct Hosts {
    /// What all names begin with.
    prefix: String,
    names: Vec<String>,
}

impl Hosts {
    /// One namespace for each name, each with an own network to the one called `node`, which routes. None where this process may
    /// not make them.
    pub fn new(names: &[&str]) -> Option<Self> {
        let able = is_root() && program("ip").is_some() && ip(&["netns", "list"]).is_ok();
        if !require(able, "root and iproute2, to make network namespaces") {
            return None;
        }
        let number = MADE.fetch_add(1, SeqCst);
        let mut hosts = Self { prefix: format!("sg{}-{number}", std::process::id()), names: Vec::new() };
        hosts.add("node");
        hosts.inside("node", &["sysctl", "-qw", "net.ipv4.ip_forward=1"]);
        for (number, name) in names.iter().enumerate() {
            hosts.add(name);
            hosts.connect(name, number);
        }
        Some(hosts)
    }

    fn add(&mut self, name: &str) {
        ip(&["netns", "add", &self.namespace(name)]).unwrap();
        self.names.push(name.to_owned());
        self.inside(name, &["ip", "link", "set", "lo", "up"]);
    }

    fn connect(&self, name: &str, number: usize) {
        let (node, host) = (self.namespace("node"), self.namespace(name));
        let (far, address) = (format!("to{number}"), self.address(name));
        let gateway = Ipv4Addr::from(u32::from(address) - 1).to_string();
        let peer = ["peer", "name", "eth0", "netns", &host];
        ip(&[&["link", "add", &far, "netns", &node, "type", "veth"], &peer[..]].concat()).unwrap();
        self.inside("node", &["ip", "address", "add", &format!("{gateway}/30"), "dev", &far]);
        self.inside("node", &["ip", "link", "set", &far, "up"]);
        self.inside(name, &["ip", "address", "add", &format!("{address}/30"), "dev", "eth0"]);
        self.inside(name, &["ip", "link", "set", "eth0", "up"]);
        self.inside(name, &["ip", "route", "add", "default", "via", &gateway]);
    }

    /// A host's address: 10.77.0.2, .6, .10 and so on, in the order of their names.
    pub fn address(&self, name: &str) -> Ipv4Addr {
        let number = self.names.iter().position(|known| known == name).unwrap() as u32 - 1;
        Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 77, 0, 2)) + 4 * number)
    }

    fn namespace(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    /// A command, to be started on a host. What is started is the process itself.
    pub fn command(&self, name: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program("ip").unwrap());
        command.args(["netns", "exec", &self.namespace(name)]).args(words);
        command
    }

    /// What a command prints there; it has to succeed.
    pub fn inside(&self, name: &str, words: &[&str]) -> String {
        let output = self.command(name, words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {words:?}: {said}");
        said.into_owned()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&["netns", "delete", &self.namespace(name)]).ok();
        }
    }
}

fn ip(words: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(words).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}
