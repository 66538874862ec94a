//! `sluicegate check`: would `run` do well here, and if not, what mends it?

use std::io::{self, IsTerminal};
use std::time::Duration;

use super::flags::{All, Flags};
use super::{Failure, print, print_json, runtime};
use crate::check::{Finding, Level, Report, check, mistakes};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Push one event to each endpoint, message "sluicegate check", and wait for its acknowledgement
    #[arg(long)]
    send: bool,
    #[command(flatten)]
    flags: Flags<All>,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let config = match args.flags.checked() {
        Ok(config) => config,
        Err(found) => {
            let report = mistakes(&found);
            show(&report, args.json)?;
            return Err(Failure::usage(format!("{} in the configuration", to_mend(report.fails))));
        }
    };
    let runtime = runtime()?;
    let report = runtime.block_on(check(&config, args.send));
    // A name look-up that hangs is not waited for.
    runtime.shutdown_timeout(Duration::from_millis(100));
    let report = report.map_err(|error| Failure::failed(format!("cannot look: {error}")))?;
    show(&report, args.json)?;
    match report.level {
        Level::Fail => Err(Failure::failed(format!("it would not run well here: {}", to_mend(report.fails)))),
        _ if args.json => Ok(()),
        Level::Warn => {
            print(&format!("It would run well here; {} worth a look.", count(report.warnings, "warning")))
        }
        Level::Ok => print("It would run well here."),
    }
}

fn to_mend(number: usize) -> String {
    format!("{} to mend", count(number, "thing"))
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn show(report: &Report, json: bool) -> Result<(), Failure> {
    if json {
        return print_json(report);
    }
    print(&human(report, io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()))
}

fn human(report: &Report, colours: bool) -> String {
    let width =
        report.findings.iter().map(|finding| finding.title().chars().count()).max().unwrap_or_default();
    let lines: Vec<_> = report.findings.iter().map(|finding| lines(finding, width, colours)).collect();
    lines.join("\n")
}

/// One line of a finding, and what mends it below.
fn lines(finding: &Finding, width: usize, colours: bool) -> String {
    // ECMA-48, "Select Graphic Rendition": green, yellow, red.
    let (word, colour) = match finding.level {
        Level::Ok => ("ok  ", "32"),
        Level::Warn => ("warn", "33"),
        Level::Fail => ("fail", "31"),
    };
    let word = if colours { format!("\x1b[{colour}m{word}\x1b[0m") } else { word.to_owned() };
    // VRL's diagnostic has several lines.
    let found = finding.found.trim_end().replace('\n', "\n      ").replace("\n      \n", "\n\n");
    let gap = if found.contains('\n') { "\n      " } else { "; " };
    let mut text = format!("{word}  {:<width$}  {found}{gap}{}", finding.title(), finding.means);
    for (at, mend) in finding.mend.iter().enumerate() {
        let head = if at == 0 { "mend:" } else { "     " };
        text.push_str(&format!("\n      {head} {mend}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(id: &'static str, level: Level, mend: &[&str]) -> Finding {
        Finding {
            id,
            subject: String::new(),
            level,
            found: "3 of 4".into(),
            means: "one is gone".into(),
            mend: mend.iter().map(|&mend| mend.to_owned()).collect(),
        }
    }

    #[test]
    fn one_line_a_finding_and_what_mends_it_below() {
        let report = Report::new(vec![
            finding("port", Level::Ok, &[]),
            finding("udp_mem", Level::Warn, &["sysctl -w a=1", "to keep it: a file"]),
        ]);
        let expected = "ok    port     3 of 4; one is gone\n\
                        warn  udp mem  3 of 4; one is gone\n      mend: sysctl -w a=1\n            to keep it: a file";
        assert_eq!(human(&report, false), expected);
        assert!(human(&report, true).starts_with("\x1b[32mok  \x1b[0m  port"));
    }
}
