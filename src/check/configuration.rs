//! The configuration: valid, or each mistake a finding.

use super::finding::{Finding, Report};
use crate::config::{Config, Invalid, keys};

/// What a configuration that is none comes to: the host is looked at once it is one.
pub fn mistakes(found: &[Invalid]) -> Report {
    Report::new(found.iter().map(mistake).collect())
}

fn mistake(invalid: &Invalid) -> Finding {
    let mend = match keys::flag_of(&invalid.path) {
        Some(flag) => format!("`{}` in the file, or --{flag}", invalid.path),
        None => format!("`{}`; `sluicegate config` shows every key", invalid.path),
    };
    Finding::ok("config", &invalid.path, &invalid.problem, "`run` refuses to start").fail([mend])
}

pub(super) fn judge(config: &Config) -> Finding {
    let program = match &config.parse.program {
        Some(program) => format!(", VRL program {} compiles", program.name()),
        None => String::new(),
    };
    let found = format!(
        "listeners {}, workers {}, endpoints {}{program}",
        config.listeners.len(),
        config.workers(),
        config.vector.endpoints.len()
    );
    Finding::ok("config", "", found, "valid")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn each_mistake_is_a_finding_with_its_place() {
        let invalid = |path: &str| Invalid { path: path.to_owned(), problem: "9 is too much".to_owned() };
        let report = mistakes(&[invalid("listeners[0].workers"), invalid("shutdwon")]);
        assert_eq!((report.level, report.fails), (Level::Fail, 2));
        let finding = &report.findings[0];
        assert_eq!(
            (finding.title().as_str(), finding.found.as_str()),
            ("config listeners[0].workers", "9 is too much")
        );
        assert!(
            finding.mend[0].contains("--workers") && report.findings[1].mend[0].contains("sluicegate config")
        );
    }
}
