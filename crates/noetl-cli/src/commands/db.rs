//! `noetl db`: inspects, migrates, backs up, and purges a database.

mod backup;
mod purge;
mod stats;
mod validate;

use std::process::ExitCode;

use noetl_store::StoreError;
use serde_json::json;

use crate::arguments::{DbArguments, DbCommand, Output};
use crate::database::Database;
use crate::error::{CliError, ErrorKind};
use crate::output;

pub(crate) fn main(command: DbCommand) -> Result<ExitCode, CliError> {
    let runtime = tokio::runtime::Runtime::new();
    let runtime = runtime.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?;
    runtime.block_on(async {
        match command {
            DbCommand::Migrate(arguments) => migrate(&arguments).await,
            DbCommand::Validate(arguments) => validate::run(&arguments).await,
            DbCommand::Stats(arguments) => stats::run(&arguments).await,
            DbCommand::Backup(arguments) => backup::run(&arguments),
            DbCommand::Purge(arguments) => purge::run(&arguments).await,
        }
    })
}

fn database(arguments: &DbArguments) -> Result<Database, CliError> {
    Database::configured(&arguments.flags.settings())
}

fn unanswered(error: &StoreError) -> CliError {
    CliError::from_error(ErrorKind::Config, error)
}

async fn migrate(arguments: &DbArguments) -> Result<ExitCode, CliError> {
    let database = database(arguments)?;
    let name = database.name();
    let (before, known) = database.schema().await?;
    database.open().await?.close().await;
    match arguments.output {
        Output::Json => {
            output::json(&json!({"database": name, "before": before, "version": known}))?;
        }
        Output::Text if before == known => {
            output::note(&format!("{name} is up to date: schema version {known}"));
        }
        Output::Text if before == 0 => {
            output::note(&format!("{name} was made: schema version {known}"));
        }
        Output::Text => {
            output::note(&format!("{name} went from schema version {before} to {known}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Formats a number of bytes with a binary unit and one decimal place.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes;
    let mut rest = 0;
    let mut unit = 0;
    while value >= 1024 && unit + 1 < UNITS.len() {
        rest = value % 1024 * 10 / 1024;
        value /= 1024;
        unit += 1;
    }
    match unit {
        0 => format!("{value} B"),
        _ => format!("{value}.{rest} {}", UNITS[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn bytes_are_shown_in_the_largest_unit() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1024 * 1024 - 1, "1023.9 KiB"),
            (u64::MAX, "16777215.9 TiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
