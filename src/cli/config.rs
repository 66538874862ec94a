//! `sluicegate config`: the effective configuration, or the schema of configuration files.

use super::flags::{All, Flags, warn_of_unknown_variables};
use super::{Failure, print};
use crate::config::{Config, show};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print a JSON Schema of configuration files, for editors
    #[arg(long)]
    schema: bool,
    #[command(flatten)]
    flags: Flags<All>,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if args.schema {
        let schema = serde_json::to_string_pretty(&show::schema()).map_err(Failure::failed)?;
        return print(&schema);
    }
    warn_of_unknown_variables();
    // The first thing that one types has no ends yet.
    let config: Config = args.flags.config_or_shown()?;
    print(show::to_toml(&config).trim_end())
}
