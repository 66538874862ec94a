//! The commands that documents show and files have in their comments, and a shell to type them into.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use super::process::binary;
use super::tls::Files;
use super::{program, repository, require};

/// Programs whose command lines are only read: they change the machine, need another one, or take long.
const NOT_RUN: &[&str] = &[
    "apt-get",
    "cargo",
    "curl",
    "docker",
    "journalctl",
    "logger",
    "nstat",
    "openssl",
    "sudo",
    "sudoedit",
    "sysctl",
    "systemctl",
    "vector",
];

/// Programs of this machine that are run as they are.
const RUN: &[&str] = &["cat", "dirname", "echo", "mkdir", "uname"];

/// A shell that knows these programs and no others.
pub struct Shell(Files);

impl Shell {
    /// None where kubectl or promtool is missing.
    pub fn new() -> Option<Self> {
        let (kubectl, promtool) = (program("kubectl"), program("promtool"));
        if !require(kubectl.is_some() && promtool.is_some(), "kubectl and promtool (.ci/tools)") {
            return None;
        }
        let shell = Self(Files::new());
        for name in NOT_RUN {
            shell.add(name, "exit 0");
        }
        for name in RUN {
            shell.add(name, &format!("exec {} \"$@\"", program(name).unwrap().display()));
        }
        // `parse` is over when its input is; of the others every argument is read, and then --help.
        let sluicegate = binary().display().to_string();
        shell.add(
            "sluicegate",
            &format!("[ \"$1\" = parse ] && exec {sluicegate} \"$@\"\nexec {sluicegate} \"$@\" --help"),
        );
        let (kubectl, promtool) = (kubectl?.display().to_string(), promtool?.display().to_string());
        let apply = format!(
            "case $1 in apply) [ \"$2\" = -k ] && exec {kubectl} kustomize \"$3\" ;; label) exit 0 ;; esac"
        );
        shell.add("kubectl", &format!("{apply}\nexec {kubectl} \"$@\""));
        shell.add("promtool", &format!("exec {promtool} \"$@\""));
        Some(shell)
    }

    fn add(&self, name: &str, script: &str) {
        let path = self.0.put(name, &format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// Types commands in the root of the repository: what they print, or what went wrong.
    pub fn run(&self, commands: &str) -> Result<String, String> {
        let output = Command::new("/bin/bash")
            .args(["-e", "-u", "-o", "pipefail", "-c", commands])
            .env("USER", "somebody")
            .env("PATH", self.0.path())
            .current_dir(repository(""))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }
}

/// The commands in a file's comments: indented by three blanks behind `#`, lines that end in a backslash joined.
pub fn commands_in_comments(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("#   ")).map(str::trim);
    joined(lines)
}

/// Commands, one a line, where a backslash at the end goes on in the next.
pub fn joined<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in lines {
        let (text, more) = line.strip_suffix('\\').map_or((line, false), |text| (text, true));
        match commands.last_mut() {
            Some(last) if goes_on => last.push_str(text),
            _ => commands.push(text.to_owned()),
        }
        goes_on = more;
    }
    commands
}
