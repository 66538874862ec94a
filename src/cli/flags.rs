//! The options of [`crate::config::keys`] as flags and environment variables.

use std::marker::PhantomData;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde_json::Value;

use super::Failure;
use crate::config::keys::{KEYS, Key, Kind};
use crate::config::variables::expand;
use crate::config::{Config, Draft, Endpoint, Invalid};
use crate::parse::Options;

/// Which keys a command takes as flags.
pub(super) trait Group {
    fn has(key: &Key) -> bool;
}

/// All of them.
#[derive(Debug, Clone)]
pub(super) struct All;

/// All but where to listen and push, for a command that brings its own ends.
#[derive(Debug)]
pub(super) struct Inner;

/// What becomes of a datagram.
#[derive(Debug)]
pub(super) struct Parsing;

impl Group for All {
    fn has(_: &Key) -> bool {
        true
    }
}

impl Group for Inner {
    fn has(key: &Key) -> bool {
        !matches!(key.flag, "listen" | "vector")
            && !["vector.tls.", "takeover."].iter().any(|section| key.path.starts_with(section))
    }
}

impl Group for Parsing {
    fn has(key: &Key) -> bool {
        key.path.starts_with("parse.")
    }
}

/// A configuration file, and what was typed over it.
#[derive(Debug, Clone)]
pub(super) struct Flags<G> {
    file: Option<PathBuf>,
    typed: Vec<(&'static Key, Value)>,
    group: PhantomData<G>,
}

impl<G: Group> Args for Flags<G> {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .env("SLUICEGATE_CONFIG")
            .value_parser(clap::value_parser!(PathBuf))
            .help("Configuration file, TOML or YAML; flags override it");
        let defaults = Draft::shown_defaults();
        KEYS.iter()
            .filter(|key| G::has(key))
            .fold(command.arg(file), |command, key| command.arg(flag(key, &defaults)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn variable(key: &Key) -> String {
    format!("SLUICEGATE_{}", key.flag.to_uppercase().replace('-', "_"))
}

/// Says which variables look like options and are none. No mistake: Kubernetes makes some up for a Service named `sluicegate`.
pub(super) fn warn_of_unknown_variables() {
    let is_unknown = |name: &String| {
        let rest = name.strip_prefix("SLUICEGATE_").filter(|rest| *rest != "CONFIG");
        rest.is_some_and(|rest| {
            let is_services = rest == "PORT" || rest.starts_with("PORT_") || rest.starts_with("SERVICE_");
            !is_services && !KEYS.iter().any(|key| variable(key) == *name)
        })
    };
    for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(is_unknown) {
        let known = KEYS.iter().map(variable);
        let likeness = |known: &String| strsim::jaro_winkler(known, &name);
        let nearest = known.max_by(|a, b| likeness(a).total_cmp(&likeness(b))).unwrap_or_default();
        tracing::warn!(
            variable = name,
            perhaps = nearest,
            "this environment variable is no option, and passed over"
        );
    }
}

fn flag(key: &'static Key, defaults: &Config) -> Arg {
    let default = match (key.show)(defaults, 0) {
        _ if matches!(key.flag, "listen" | "vector" | "workers") => String::new(),
        Value::String(text) if text.is_empty() => String::new(),
        Value::Object(_) | Value::Bool(_) => String::new(),
        Value::String(text) => format!(" [default: {text}]"),
        other => format!(" [default: {other}]"),
    };
    let arg = Arg::new(key.path)
        .long(key.flag)
        .env(variable(key))
        .hide_env(true)
        .help(format!("{}{default}", key.help));
    match key.kind {
        Kind::Text(name) if key.flag == "listen" => arg.value_name(name).action(ArgAction::Append),
        Kind::Text(name) => arg.value_name(name).action(ArgAction::Set),
        Kind::Integer => arg.value_name("N").action(ArgAction::Set),
        Kind::Size => arg.value_name("SIZE").action(ArgAction::Set),
        Kind::Time => arg.value_name("TIME").action(ArgAction::Set),
        Kind::Switch => {
            arg.value_name("BOOL").num_args(0..=1).default_missing_value("true").require_equals(true)
        }
        Kind::Choice(words) => arg.value_name(words.join("|")).action(ArgAction::Set),
        Kind::Texts(name) | Kind::Table(name) => arg.value_name(name).action(ArgAction::Append),
    }
}

impl<G: Group> FromArgMatches for Flags<G> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let typed = KEYS.iter().filter(|key| G::has(key)).filter_map(|key| {
            let source = matches.value_source(key.path)?;
            let mut values = matches.get_many::<String>(key.path)?.cloned();
            match (is_list(key), source) {
                (false, _) => values.next_back().map(|value| (key, Value::String(value))),
                // A variable holds a whole list.
                (true, ValueSource::EnvVariable) => {
                    let whole = values.next()?;
                    Some((key, whole.split(',').map(str::trim).map(str::to_owned).collect()))
                }
                (true, _) => Some((key, values.collect())),
            }
        });
        Ok(Self { file: matches.get_one("config").cloned(), typed: typed.collect(), group: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn is_list(key: &Key) -> bool {
    key.flag == "listen" || matches!(key.kind, Kind::Texts(_) | Kind::Table(_))
}

impl<G> Flags<G> {
    /// The configuration.
    pub(super) fn config(&self) -> Result<Config, Failure> {
        self.checked().map_err(|found| failure(&found))
    }

    /// The configuration, or everything that is wrong with it.
    pub(super) fn checked(&self) -> Result<Config, Vec<Invalid>> {
        self.draft(None).finish()
    }

    /// The configuration, with examples for an end that is not given.
    pub(super) fn config_or_shown(&self) -> Result<Config, Failure> {
        let mut draft = self.draft(None);
        draft.show_ends();
        draft.finish().map_err(|found| failure(&found))
    }

    /// The configuration with these ends in place of what the file says.
    pub(super) fn config_between(
        &self,
        listen: Option<SocketAddr>,
        vector: Endpoint,
    ) -> Result<Config, Failure> {
        let mut draft = self.draft(listen);
        draft.set_endpoints(vec![vector]);
        draft.finish().map_err(|found| failure(&found))
    }

    /// What becomes of a datagram.
    pub(super) fn parse_options(&self) -> Result<Options, Failure> {
        self.draft(None).finish_parse().map_err(|found| failure(&found))
    }

    fn draft(&self, listen: Option<SocketAddr>) -> Draft {
        let mut draft = self.file.as_deref().map_or_else(Draft::default, Draft::read);
        if let Some(address) = listen {
            draft.forget_listeners();
            draft.add_listener(Some(address));
        }
        for (key, value) in &self.typed {
            match (key.flag, value) {
                ("listen", Value::Array(addresses)) => listen_on(&mut draft, key, addresses),
                ("field", _) => match expand(&value.to_string(), |name| std::env::var(name).ok()) {
                    Ok(text) => draft.set(key, key.path, &serde_json::from_str(&text).unwrap_or(Value::Null)),
                    Err(problem) => draft.refuse(key.path, problem),
                },
                _ => draft.set(key, key.path, value),
            }
        }
        draft
    }
}

fn listen_on(draft: &mut Draft, key: &Key, addresses: &[Value]) {
    draft.forget_listeners();
    for (at, address) in addresses.iter().enumerate() {
        draft.add_listener(None);
        draft.for_listener(Some(at));
        draft.set(key, key.path, address);
    }
    draft.for_listener(None);
}

/// Everything that was found, each in a line of its own where it is more than one.
fn failure(found: &[Invalid]) -> Failure {
    match found {
        [one] => Failure::usage(one),
        many => {
            let lines: Vec<_> = many.iter().map(|found| format!("\n  {found}")).collect();
            Failure::usage(format!("{} things to mend:{}", many.len(), lines.concat()))
        }
    }
}
