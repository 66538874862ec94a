//! A configuration in the making: from the file, then from flags, every problem kept.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::keys::{self, Key};
use super::{Config, Invalid, Listener, Tls};
use crate::parse::{Options, Program};

/// What is known so far, and what was wrong.
#[derive(Debug, Default)]
pub struct Draft {
    pub(super) config: Config,
    pub(super) program: Option<PathBuf>,
    /// The listener that a listener's key means; every one when none.
    listener: Option<usize>,
    found: Vec<Invalid>,
    /// The file could not be read at all: what it lacks is no news.
    unreadable: bool,
}

impl Draft {
    /// A draft that begins with a file.
    pub fn read(path: &Path) -> Self {
        let mut draft = Self::default();
        super::file::read(path, &mut draft);
        draft
    }

    /// The defaults, with one listener to show a listener's.
    pub fn shown_defaults() -> Config {
        let mut draft = Self::default();
        draft.add_listener(None);
        draft.config
    }

    /// Puts examples where nothing says where to listen or to push.
    pub fn show_ends(&mut self) {
        if self.config.listeners.is_empty() {
            self.add_listener(Some(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 5_514)));
        }
        if self.config.vector.endpoints.is_empty() {
            self.config.vector.endpoints = vec![super::Endpoint::here(6_000)];
        }
    }

    /// Makes a listener's keys mean the listener by this number; every one when none.
    pub fn for_listener(&mut self, at: Option<usize>) {
        self.listener = at;
    }

    /// Adds a listener with defaults for what is not said of it.
    pub fn add_listener(&mut self, address: Option<SocketAddr>) {
        let nowhere = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
        self.config.listeners.push(Listener::new(address.unwrap_or(nowhere)));
    }

    /// Forgets the listeners of the file, for those of the command line.
    pub fn forget_listeners(&mut self) {
        self.config.listeners.clear();
    }

    /// Sets the endpoints, for commands that bring their own receiver, and forgets how to meet others.
    pub fn set_endpoints(&mut self, endpoints: Vec<super::Endpoint>) {
        self.config.vector.endpoints = endpoints;
        self.config.vector.tls = Tls::default();
    }

    /// Sets a key; `path` is its place in the file, with a listener's number.
    pub fn set(&mut self, key: &Key, path: &str, value: &Value) {
        if let Err(problem) = (key.set)(self, value) {
            self.refuse(path, problem);
        }
    }

    /// Keeps a problem.
    pub fn refuse(&mut self, path: &str, problem: impl std::fmt::Display) {
        self.found.push(Invalid { path: path.to_owned(), problem: problem.to_string() });
    }

    /// Keeps why the file could not be read.
    pub(super) fn refuse_file(&mut self, place: &str, problem: String) {
        self.refuse(place, problem);
        self.unreadable = true;
    }

    pub(super) fn each_listener(&mut self, mut change: impl FnMut(&mut Listener)) {
        match self.listener {
            Some(at) => self.config.listeners.get_mut(at).into_iter().for_each(change),
            None => self.config.listeners.iter_mut().for_each(&mut change),
        }
    }

    /// Compiles the program and checks what has to fit together.
    ///
    /// # Errors
    /// Every problem that was found.
    pub fn finish(mut self) -> Result<Config, Vec<Invalid>> {
        self.compile();
        if self.unreadable {
            return Err(self.found);
        }
        let (config, more) = match self.config.checked() {
            Ok(config) => (Some(config), Vec::new()),
            Err(found) => (None, found),
        };
        // A key whose value could not be read is not also told that it has none.
        let refused = |path: &str| {
            self.found.iter().any(|found| keys::key_at(&found.path).is_some_and(|key| key.path == path))
        };
        let more: Vec<_> = more
            .into_iter()
            .filter(|m| !keys::key_at(&m.path).is_some_and(|key| refused(key.path)))
            .collect();
        match config.filter(|_| self.found.is_empty()) {
            Some(config) => Ok(config),
            None => Err([self.found, more].concat()),
        }
    }

    /// The part that says what becomes of a datagram.
    ///
    /// # Errors
    /// Every problem that was found in it.
    pub fn finish_parse(mut self) -> Result<Options, Vec<Invalid>> {
        self.compile();
        if self.found.is_empty() { Ok(self.config.parse) } else { Err(self.found) }
    }

    fn compile(&mut self) {
        let Some(path) = self.program.take() else { return };
        let place = "parse.program";
        match super::file::read_text(&path) {
            Err(problem) => self.refuse(place, format!("{}: {problem}", path.display())),
            Ok(source) => match Program::compile(&path.display().to_string(), &source) {
                Ok(program) => self.config.parse.program = Some(program),
                Err(error) => self.refuse(place, error),
            },
        }
    }
}
