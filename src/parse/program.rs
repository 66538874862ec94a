//! A VRL program: compiled once, run by each worker.

use std::fmt;
use std::sync::Arc;

use tracing::warn;
use vrl::compiler::runtime::{Runtime, Terminate};
use vrl::compiler::{Program as Compiled, TargetValue, TimeZone};
use vrl::diagnostic::Formatter;
use vrl::value::{Secrets, Value};

use super::zone::Zone;
use crate::logs::Occasionally;

/// A program that fails, fails for every event.
static FAILED: Occasionally = Occasionally::new();

/// A compiled program, shared by all workers.
#[derive(Clone)]
pub struct Program {
    name: String,
    compiled: Arc<Compiled>,
}

/// Why a program does not compile: VRL's own diagnostic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the VRL program does not compile:\n{0}")]
pub struct ProgramError(pub String);

impl Program {
    /// Where it came from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Compiles a program, called `name`, with all of VRL's standard library that needs no network.
    ///
    /// # Errors
    /// VRL's diagnostic, with the place in the source.
    pub fn compile(name: &str, source: &str) -> Result<Self, ProgramError> {
        match vrl::compiler::compile(source, &vrl::stdlib::all()) {
            Ok(compiled) => Ok(Self { name: name.to_owned(), compiled: Arc::new(compiled.program) }),
            Err(diagnostics) => Err(ProgramError(Formatter::new(source, diagnostics).to_string())),
        }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Program").field(&self.name).finish()
    }
}

/// No event is nested deeper: what walks through one would run out of stack.
const MAX_DEPTH: usize = 256;

/// True when objects and arrays are nested deeper than `limit`. Needs no stack of its own.
fn is_deeper(value: &Value, limit: usize) -> bool {
    let mut open = vec![(value, 0)];
    while let Some((value, depth)) = open.pop() {
        if depth > limit {
            return true;
        }
        match value {
            Value::Object(fields) => open.extend(fields.values().map(|value| (value, depth + 1))),
            Value::Array(items) => open.extend(items.iter().map(|value| (value, depth + 1))),
            _ => {}
        }
    }
    false
}

/// What a program made of an event.
pub(super) enum Ran {
    /// These events; none when it made an empty array.
    Events(Vec<Value>),
    /// It called `abort`.
    Aborted,
    /// It failed; the event is to be kept as it was.
    Failed,
}

/// A program and what it needs to run; one for each worker.
pub(super) struct Runner {
    program: Program,
    runtime: Runtime,
    timezone: TimeZone,
}

impl Runner {
    pub(super) fn new(program: &Program, zone: Zone) -> Self {
        let timezone = match zone {
            Zone::Named(zone) => TimeZone::Named(zone),
            Zone::Local | Zone::Fixed(_) => TimeZone::Local,
        };
        Self { program: program.clone(), runtime: Runtime::default(), timezone }
    }

    pub(super) fn run(&mut self, event: Value) -> Ran {
        let metadata = Value::Object(Default::default());
        let mut target = TargetValue { value: event, metadata, secrets: Secrets::new() };
        let result = self.runtime.resolve(&mut target, &self.program.compiled, &self.timezone);
        self.runtime.clear();
        match result {
            Ok(_) if is_deeper(&target.value, MAX_DEPTH) => {
                if let Some(suppressed) = FAILED.now() {
                    warn!(
                        MAX_DEPTH,
                        suppressed,
                        "the VRL program nested an event too deeply; the event is kept with parse_error"
                    );
                }
                Ran::Failed
            }
            Ok(_) => Ran::Events(match target.value {
                Value::Array(events) => events,
                event => vec![event],
            }),
            Err(Terminate::Abort(_)) => Ran::Aborted,
            Err(terminate) => {
                if let Some(suppressed) = FAILED.now() {
                    warn!(error = %terminate, suppressed, "the VRL program failed; the event is kept with parse_error");
                }
                Ran::Failed
            }
        }
    }
}
