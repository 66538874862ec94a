//! The hot path's instructions, counted by valgrind: stable where seconds are not, so a test can hold them to a budget.

use std::process::Command;

use crate::support::process::binary;
use crate::support::{program, require};

/// Instructions in user space, of this program from start to end.
fn instructions(valgrind: &std::path::Path, arguments: &[&str]) -> u64 {
    let mut command = Command::new(valgrind);
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(binary()).args(arguments);
    let ended = command.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    let collected = said.lines().find_map(|line| line.split("Collected : ").nth(1));
    collected.unwrap_or_else(|| panic!("no count in {said}")).trim().parse().unwrap()
}

/// Instructions for each message of the hot path, whatever a start costs.
fn for_each_message(options: &[&str]) -> Option<f64> {
    const FEW: u64 = 2_000;
    const MANY: u64 = 22_000;
    let valgrind = program("valgrind");
    require(valgrind.is_some(), "valgrind").then_some(())?;
    let count = |messages: u64| {
        instructions(valgrind.as_deref()?, &[&["hot-path", &messages.to_string()], options].concat()).into()
    };
    let (few, many): (Option<u64>, Option<u64>) = (count(FEW), count(MANY));
    Some((many? - few?) as f64 / (MANY - FEW) as f64)
}

/// The budgets are for the build that tests use, a tenth above what was measured; a release build takes about half.
#[test]
fn a_message_takes_no_more_instructions_than_it_should() {
    for (what, options, budget) in [("raw", &[][..], 1_560.0), ("parsed", &["--parse"][..], 11_300.0)] {
        let Some(each) = for_each_message(options) else { return };
        println!("{what}: {each:.0} instructions a message");
        assert!(each > budget / 3.0, "{what}: {each:.0}: did it do its work?");
        assert!(each <= budget, "{what}: {each:.0} instructions a message, {budget} are allowed");
    }
}
