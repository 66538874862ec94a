//! `sluicegate` as a child process.

use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;
use tempfile::TempDir;

use super::{is_root, program, require, wait_until};

pub struct Process {
    child: Child,
    files: TempDir,
}

pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// The last line of stdout as JSON.
    pub fn json(&self) -> Json {
        let last = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|_| panic!("no JSON at the end: {last:?}\n{}", self.stderr))
    }
}

pub fn binary() -> PathBuf {
    env!("CARGO_BIN_EXE_sluicegate").into()
}

/// `sluicegate`, to be started as nobody and without any capability; none where this process cannot do that.
pub fn as_nobody(arguments: &[&str]) -> Option<(Command, TempDir)> {
    let setpriv = program("setpriv");
    if !require(is_root() && setpriv.is_some(), "root and setpriv, to become nobody") {
        return None;
    }
    // The build directory may be closed to others.
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let copy = directory.path().join("sluicegate");
    std::fs::copy(binary(), &copy).unwrap();
    let mut command = Command::new(setpriv?);
    command.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
    ]);
    command.arg(copy).args(arguments);
    Some((command, directory))
}

impl Process {
    pub fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(binary());
        command.args(arguments);
        Self::spawn(command)
    }

    pub fn spawn(mut command: Command) -> Self {
        let files = tempfile::tempdir().unwrap();
        let file = |name| File::create(files.path().join(name)).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .env_remove("RUST_LOG")
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        Self { child, files }
    }

    /// `run`, once its sockets are bound.
    pub fn run(listen: SocketAddr, vector: SocketAddr, more: &[&str]) -> Self {
        let (listen, vector) = (listen.to_string(), format!("http://{vector}"));
        let mut arguments = vec!["run", "--listen", &listen, "--vector", &vector];
        arguments.extend(more);
        let mut process = Self::start(&arguments);
        process.wait_for_log("listening");
        process
    }

    /// `receive`, once it can be connected to.
    pub fn receive(address: SocketAddr, mode: &str) -> Self {
        let mut process = Self::start(&["receive", &address.to_string(), mode]);
        process.wait_for_log("receiving");
        process
    }

    pub fn wait_for_log(&mut self, text: &str) {
        wait_until(&format!("the log says {text:?}"), || {
            let stderr = self.read("stderr");
            assert!(self.child.try_wait().unwrap().is_none(), "it ended early: {stderr}");
            stderr.contains(text)
        });
    }

    pub fn stdout(&self) -> String {
        self.read("stdout")
    }

    pub fn stderr(&self) -> String {
        self.read("stderr")
    }

    pub fn is_running(&self) -> bool {
        // One that has ended is a zombie until it is waited for.
        let state = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        state.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How many file descriptors it has.
    pub fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id() as i32).unwrap(), signal).unwrap();
    }

    /// SIGTERM, then its end.
    pub fn stop(self) -> Ended {
        self.signal(Signal::TERM);
        self.end()
    }

    /// SIGKILL; returns what it had printed.
    pub fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.stdout()
    }

    pub fn end(mut self) -> Ended {
        let mut status = None;
        wait_until("the process ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        Ended { status: status.unwrap(), stdout: self.stdout(), stderr: self.stderr() }
    }

    fn read(&self, name: &str) -> String {
        read_lossy(&self.files.path().join(name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn read_lossy(path: &Path) -> String {
    let mut bytes = Vec::new();
    File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}
