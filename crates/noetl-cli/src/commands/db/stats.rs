//! `noetl db stats`: prints rows and bytes per table.

use std::process::ExitCode;

use serde_json::json;

use super::{database, size, unanswered};
use crate::arguments::{DbArguments, Output};
use crate::error::CliError;
use crate::output;

pub(super) async fn run(arguments: &DbArguments) -> Result<ExitCode, CliError> {
    let database = database(arguments)?;
    let name = database.name();
    let store = database.look_at().await?;
    let tables = store.tables().await;
    store.close().await;
    let tables = tables.map_err(|error| unanswered(&error))?;
    let bytes: u64 = tables.iter().map(|table| table.bytes).sum();
    if arguments.output == Output::Json {
        output::json(&json!({"database": name, "bytes": bytes, "tables": tables}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines = vec![format!("{:<22} {:>12} {:>12}\n", "table", "rows", "size")];
    for table in &tables {
        lines.push(format!("{:<22} {:>12} {:>12}\n", table.name, table.rows, size(table.bytes)));
    }
    lines.push(format!("{:<22} {:>12} {:>12}\n", "all", "", size(bytes)));
    output::data(lines.concat().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
