//! Tables for people.

pub(super) use crate::numbers::{grouped, percent};

/// One line of a table: a name, a number, a remark.
pub(super) fn row(name: &str, number: u64, remark: &str) -> String {
    format!("  {name:<26}{:>12}   {remark}", grouped(number)).trim_end().to_owned()
}
