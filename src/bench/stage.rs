//! One stage: this program started again with other arguments.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use serde_json::Value as Json;

/// How long a stage may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a stage gave no result.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The machine refused a process or a port.
    #[error("cannot run a stage: {0}")]
    Machine(#[from] io::Error),
    /// It took too long.
    #[error("the stage `{0}` did not {1} in time")]
    Slow(&'static str, &'static str),
    /// It ended before it was told to; its errors are on stderr.
    #[error("the stage `{0}` ended early; its messages are above")]
    Ended(&'static str),
    /// It ended without its last line of JSON; its errors are on stderr.
    #[error("the stage `{0}` ended without a result; its messages are above")]
    Silent(&'static str),
}

/// Cores that stages are kept to, each a list such as `0,2-3`; none where the scheduler decides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Pins {
    /// The sender's.
    pub load: Option<String>,
    /// The receiving or forwarding process's.
    pub forwarder: Option<String>,
    /// The end receiver's.
    pub sink: Option<String>,
}

impl FromStr for Pins {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut lists = text.split('/').map(str::to_owned);
        let pins = Self { load: lists.next(), forwarder: lists.next(), sink: lists.next() };
        let is_list = |list: &Option<String>| {
            list.as_ref().is_some_and(|list| {
                !list.is_empty() && list.bytes().all(|b| b.is_ascii_digit() || b == b',' || b == b'-')
            })
        };
        match [&pins.load, &pins.forwarder, &pins.sink].into_iter().all(is_list) && lists.next().is_none() {
            true => Ok(pins),
            false => {
                Err("write three lists of cores, of the load, the forwarder and the sink, such as 0/1-2/3"
                    .to_owned())
            }
        }
    }
}

/// What a stage cost, as the kernel accounts for its process.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Cost {
    /// CPU, user and system, microseconds for each datagram sent.
    pub cpu_us: f64,
    /// The largest resident set, KiB.
    pub peak_rss_kib: u64,
    /// Page faults that needed no disk, a second, in the second half of the load: by then every buffer has been touched.
    pub page_faults_per_second: f64,
}

/// A running stage; killed when dropped.
#[derive(Debug)]
pub struct Stage {
    name: &'static str,
    child: Child,
    /// Where its last line comes, if it is this program.
    out: Option<BufReader<ChildStdout>>,
    begin: Usage,
    half: Usage,
}

#[derive(Debug, Clone, Copy)]
struct Usage {
    at: Instant,
    cpu_us: f64,
    page_faults: u64,
    peak_rss_kib: u64,
}

impl Stage {
    /// Starts this program with `arguments`, on these cores where they are given.
    ///
    /// # Errors
    /// When the machine refuses.
    pub fn start(name: &'static str, arguments: &[&str], pin: Option<&str>) -> Result<Self, StageError> {
        let mut child = kept_to(pin, &env::current_exe()?)
            .args(arguments)
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = child.stdout.take().map(BufReader::new);
        let begin = Usage::of(child.id());
        Ok(Self { name, child, out, begin, half: begin })
    }

    /// Starts another program, which has nothing to say at its end.
    ///
    /// # Errors
    /// When the machine refuses.
    pub fn program(
        name: &'static str,
        program: &Path,
        arguments: &[String],
        pin: Option<&str>,
    ) -> Result<Self, StageError> {
        let child =
            kept_to(pin, program).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let begin = Usage::of(child.id());
        Ok(Self { name, child, out: None, begin, half: begin })
    }

    /// Waits until it has a UDP socket on `address`.
    ///
    /// # Errors
    /// When it does not get that far.
    pub fn wait_for_udp(&mut self, address: &str) -> Result<(), StageError> {
        self.wait_for_port("/proc/net/udp", address)
    }

    /// Waits until it listens on a TCP port.
    ///
    /// # Errors
    /// When it does not get that far.
    pub fn wait_for_tcp(&mut self, address: &str) -> Result<(), StageError> {
        self.wait_for_port("/proc/net/tcp", address)
    }

    fn wait_for_port(&mut self, table: &str, address: &str) -> Result<(), StageError> {
        let port: u16 = address.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or_default();
        let ends = format!(":{port:04X}");
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            // The second column is the local address, in hexadecimal.
            let sockets = fs::read_to_string(table)?;
            let mut local = sockets.lines().filter_map(|line| line.split_whitespace().nth(1));
            if local.any(|address| address.ends_with(&ends)) {
                return Ok(());
            }
            self.still_runs()?;
            thread::sleep(Duration::from_millis(10));
        }
        Err(StageError::Slow(self.name, "listen"))
    }

    /// Notes that half of the load is over.
    pub fn half_time(&mut self) {
        self.half = Usage::of(self.child.id());
    }

    fn still_runs(&mut self) -> Result<(), StageError> {
        self.child.try_wait()?.map_or(Ok(()), |_| Err(StageError::Ended(self.name)))
    }

    /// Waits until it has used no CPU to speak of for a while: what was queued in it is gone.
    ///
    /// # Errors
    /// When it never comes to rest.
    pub fn wait_until_idle(&mut self) -> Result<(), StageError> {
        const REST: Duration = Duration::from_millis(300);
        const IDLE_US: f64 = 10_000.0; // a clock tick
        let deadline = Instant::now() + PATIENCE;
        let mut before = Usage::of(self.child.id()).cpu_us;
        while Instant::now() < deadline {
            thread::sleep(REST);
            self.still_runs()?;
            let now = Usage::of(self.child.id()).cpu_us;
            if now - before <= IDLE_US {
                return Ok(());
            }
            before = now;
        }
        Err(StageError::Slow(self.name, "come to rest"))
    }

    /// Waits for it to end by itself and gives its last line.
    ///
    /// # Errors
    /// When it takes longer than `limit`, or ends without a result.
    pub fn finish(mut self, limit: Duration) -> Result<Json, StageError> {
        let last = self.last_line()?; // its end closes the pipe
        self.wait_for_end(limit)?;
        Ok(last)
    }

    /// Tells it to stop, and gives its cost and its last line. `datagrams` is what the cost is divided by.
    ///
    /// # Errors
    /// When it does not stop, or ends without a result.
    pub fn stop(mut self, datagrams: u64) -> Result<(Cost, Json), StageError> {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            kill_process(pid, Signal::TERM).map_err(io::Error::from)?;
        }
        let mut usage = Usage::of(self.child.id());
        let deadline = Instant::now() + PATIENCE;
        // What it still does while it drains belongs to its cost: look until it is gone.
        while self.child.try_wait()?.is_none() {
            if let Some(later) = Usage::read(self.child.id()) {
                usage = later;
            }
            if Instant::now() > deadline {
                return Err(StageError::Slow(self.name, "stop"));
            }
            thread::sleep(Duration::from_millis(2));
        }
        let seconds = usage.at.duration_since(self.half.at).as_secs_f64();
        let cost = Cost {
            cpu_us: (usage.cpu_us - self.begin.cpu_us) / datagrams.max(1) as f64,
            peak_rss_kib: usage.peak_rss_kib,
            page_faults_per_second: usage.page_faults.saturating_sub(self.half.page_faults) as f64 / seconds,
        };
        let says = self.out.is_some();
        Ok((cost, if says { self.last_line()? } else { Json::Null }))
    }

    fn last_line(&mut self) -> Result<Json, StageError> {
        let lines = self.out.take().into_iter().flat_map(BufRead::lines);
        let last = lines.map_while(Result::ok).last();
        last.and_then(|line| serde_json::from_str(&line).ok()).ok_or(StageError::Silent(self.name))
    }

    fn wait_for_end(&mut self, limit: Duration) -> Result<(), StageError> {
        let deadline = Instant::now() + limit;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                return Err(StageError::Slow(self.name, "end"));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

/// A command on these cores; taskset(1) becomes the program, so that the process is the same.
fn kept_to(pin: Option<&str>, program: &Path) -> Command {
    let Some(cores) = pin else { return Command::new(program) };
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", cores]).arg(program);
    command
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Both fail where it has ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Usage {
    fn of(pid: u32) -> Self {
        Self::read(pid).unwrap_or(Self { at: Instant::now(), cpu_us: 0.0, page_faults: 0, peak_rss_kib: 0 })
    }

    /// From /proc/PID (proc(5)): CPU in clock ticks of 10 ms, which over seconds of load is exact enough.
    fn read(pid: u32) -> Option<Self> {
        const TICK_US: f64 = 10_000.0;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |i: usize| fields.get(i)?.parse::<u64>().ok();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?; // gone for a zombie
        Some(Self {
            at: Instant::now(),
            cpu_us: (field(11)? + field(12)?) as f64 * TICK_US,
            page_faults: field(7)?,
            peak_rss_kib: peak.split_whitespace().next()?.parse().ok()?,
        })
    }
}
