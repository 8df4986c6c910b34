//! SQLite as source and target of a transfer.

use noetl_model::{Failure, Map, Value};
use rusqlite::params_from_iter;

use super::Side;
use super::flow::{
    RowMessage, RowReceiver, RowSender, WriteMode, WritePlan, WriteTarget, list, on_conflict,
    picked,
};
use crate::config::wrong;
use crate::own::FileGuard;
use crate::sql::{DatabaseFile, Dialect, Script, StopFlag, column_names, number_names, quoted};
use crate::sqlite::{bind, cells, failed, open, patiently};

/// Reads the rows of one statement.
pub(super) async fn read(side: &Side<'_>, flow: RowSender) -> Result<(), Failure> {
    let mut settings = side.settings.clone();
    if !DatabaseFile::read(&settings)?.is_in_memory() {
        // Read-only, so that a missing source file is not created.
        settings.insert("read_only".to_owned(), Value::Bool(true));
    }
    let file = DatabaseFile::read(&settings)?;
    let (stop, guard) = (side.stop.clone(), side.guard.clone());
    let work = tokio::task::spawn_blocking(move || read_all(&file, &guard, &settings, &stop, flow));
    side.stop.supervise(work, side.call, None).await
}

fn read_all(
    file: &DatabaseFile,
    guard: &FileGuard,
    settings: &Map,
    stop: &StopFlag,
    mut flow: RowSender,
) -> Result<(), Failure> {
    let nothing = Map::new();
    let script = Script::read_from(settings, &nothing, "sqlite", Dialect::Sqlite)?;
    let [part] = script.parts.as_slice() else {
        return Err(wrong("a source reads one statement, and there are several"));
    };
    let failing = |error: rusqlite::Error| failed(&error, None);
    let connection = open(file, guard, stop)?;
    let mut prepared =
        patiently(stop, || connection.prepare(part.statement.text)).map_err(failing)?;
    bind(&mut prepared, &part.params, 0)?;
    let columns = prepared.column_count();
    flow.begin_blocking(column_names(prepared.column_names()))?;
    let mut rows = prepared.raw_query();
    while let Some(row) = rows.next().map_err(failing)? {
        flow.row_blocking(cells(row, columns).map_err(failing)?)?;
    }
    flow.end_blocking()?;
    Ok(())
}

/// Writes all rows in one transaction.
pub(super) async fn write(
    side: &Side<'_>,
    plan: &WritePlan,
    receiver: RowReceiver,
) -> Result<u64, Failure> {
    let file = DatabaseFile::read(side.settings)?;
    if file.is_in_memory() {
        return Err(wrong("needs `db_path`: what is written in memory is gone with the step"));
    }
    let (plan, stop, guard) = (plan.clone(), side.stop.clone(), side.guard.clone());
    let work =
        tokio::task::spawn_blocking(move || write_all(&file, &guard, &plan, &stop, receiver));
    side.stop.supervise(work, side.call, None).await
}

fn write_all(
    file: &DatabaseFile,
    guard: &FileGuard,
    plan: &WritePlan,
    stop: &StopFlag,
    mut receiver: RowReceiver,
) -> Result<u64, Failure> {
    let failing = |error: rusqlite::Error| failed(&error, None);
    let columns = plan.columns(&receiver.columns_blocking()?)?;
    let connection = open(file, guard, stop)?;
    // Dropping the connection without a commit rolls back.
    patiently(stop, || connection.execute_batch("begin immediate")).map_err(failing)?;
    if let WriteTarget::Table { table, mode: WriteMode::Replace } = &plan.into {
        let clear = format!("delete from {}", quoted(table, true));
        connection.execute_batch(&clear).map_err(failing)?;
    }
    let (text, places) = statement(plan, &columns)?;
    let mut prepared = connection.prepare(&text).map_err(failing)?;
    let mut count = 0;
    loop {
        match receiver.next_blocking()? {
            RowMessage::Columns(_) => {}
            RowMessage::Rows(rows) => {
                for row in rows {
                    let row = picked(&row, &columns);
                    let values = places.iter().map(|place| &row[*place]);
                    prepared.execute(params_from_iter(values)).map_err(failing)?;
                    count += 1;
                }
            }
            RowMessage::End => break,
        }
    }
    drop(prepared);
    patiently(stop, || connection.execute_batch("commit")).map_err(failing)?;
    Ok(count)
}

/// Returns the statement that writes one row, and the column indexes of its parameters.
fn statement(
    plan: &WritePlan,
    columns: &[(String, usize)],
) -> Result<(String, Vec<usize>), Failure> {
    match &plan.into {
        WriteTarget::Table { table, mode } => {
            let names = list(columns.iter().map(|(name, _)| name));
            let marks = vec!["?"; columns.len()].join(", ");
            let mut text =
                format!("insert into {} ({names}) values ({marks})", quoted(table, true));
            if let WriteMode::Upsert(keys) = mode {
                text.push(' ');
                text.push_str(&on_conflict(columns, keys));
            }
            Ok((text, (0..columns.len()).collect()))
        }
        WriteTarget::Query(query) => {
            let place_of = |name: &str| columns.iter().position(|(column, _)| column == name);
            let takes = |name: &str| match place_of(name) {
                Some(_) => Ok(true),
                None => Err(wrong(format!(
                    "`query` asks for `:{name}`, which the source does not have"
                ))),
            };
            let (text, names) = number_names(query, Dialect::Sqlite, takes)?;
            Ok((text, names.iter().filter_map(|name| place_of(name)).collect()))
        }
    }
}
