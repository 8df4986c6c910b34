//! `noetl db backup`: writes a consistent copy of an embedded database.

use std::process::ExitCode;

use noetl_store_sqlite as sqlite;
use serde_json::json;

use super::{database, size};
use crate::arguments::{BackupArguments, Output};
use crate::database::{Database, unopened};
use crate::error::{CliError, ErrorKind};
use crate::output::{self, progress::Bar};

pub(super) fn run(arguments: &BackupArguments) -> Result<ExitCode, CliError> {
    let database = database(&arguments.db)?;
    let name = database.name();
    let path = match database {
        Database::Sqlite(path) => path,
        Database::Memory => {
            return Err(CliError::new(ErrorKind::User, "a database in memory cannot be copied"));
        }
        Database::Postgres(_) => {
            let file = arguments.file.display();
            return Err(CliError::new(
                ErrorKind::User,
                "a Postgres database has its own tool for this",
            )
            .hint(format!("pg_dump --format=custom --schema=noetl --file='{file}' '{name}'")));
        }
    };
    let bar = Bar::new("pages");
    let copied = sqlite::backup(&path, &arguments.file, |done, all| bar.set(done, all));
    bar.clear();
    let bytes = copied.map_err(|error| unopened(&error))?;
    let file = arguments.file.display().to_string();
    match arguments.db.output {
        Output::Json => output::json(&json!({"database": name, "file": file, "bytes": bytes}))?,
        Output::Text => output::note(&format!("{name} was copied to {file}: {}", size(bytes))),
    }
    Ok(ExitCode::SUCCESS)
}
