//! Execution of a step's statements on one connection.

use noetl_model::{Failure, FailureKind, Value};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, Statement, ToSql};
use serde_json::json;

use super::file::{BusyTimeout, check_attached, open, patiently};
use crate::config::wrong;
use crate::own::FileGuard;
use crate::sql::{
    DatabaseFile, Params, Script, ScriptStatement, SqlCell, StatementResults, StopFlag,
    column_names,
};

/// Runs all statements and closes the database.
pub(super) fn run(
    file: &DatabaseFile,
    guard: &FileGuard,
    script: &Script<'_>,
    stop: &StopFlag,
    mut answer: StatementResults,
) -> Result<Value, Failure> {
    let connection = open(file, guard, stop)?;
    if script.is_atomic {
        // A writer acquires its lock at the start; a later upgrade could deadlock.
        let changes = script.parts.iter().any(|part| !reads_only(part));
        let begin = if changes { "begin immediate" } else { "begin" };
        patiently(stop, || connection.execute_batch(begin))
            .map_err(|error| failed(&error, None))?;
    }
    for part in &script.parts {
        statement(&connection, part, stop, &mut answer)?;
        if part.statement.verb == "attach" {
            check_attached(&connection, guard)?;
        }
    }
    if script.is_atomic {
        let ended = patiently(stop, || connection.execute_batch("commit"));
        ended.map_err(|error| failed(&error, None))?;
    }
    Ok(answer.into_value())
}

fn reads_only(part: &ScriptStatement<'_>) -> bool {
    matches!(part.statement.verb.as_str(), "select" | "values" | "explain")
}

fn statement(
    connection: &Connection,
    part: &ScriptStatement<'_>,
    stop: &StopFlag,
    answer: &mut StatementResults,
) -> Result<(), Failure> {
    let index = answer.index();
    let failing = |error: rusqlite::Error| failed(&error, Some(index));
    let mut prepared =
        patiently(stop, || connection.prepare(part.statement.text)).map_err(failing)?;
    bind(&mut prepared, &part.params, index)?;
    let before = connection.total_changes();
    // Outside a transaction, a statement that finds the database locked has no effect.
    let is_alone = connection.is_autocommit();
    let patience = BusyTimeout::new(stop);
    let columns = prepared.column_count();
    let names = (columns > 0).then(|| column_names(prepared.column_names()));
    answer.begin(names);
    'again: loop {
        let mut rows = prepared.raw_query();
        let mut has_begun = false;
        loop {
            match rows.next() {
                Ok(None) => break 'again,
                Ok(Some(row)) => answer.row(cells(row, columns).map_err(failing)?)?,
                // After an error, a statement cannot continue; it has to be restarted.
                Err(error) if is_alone && !has_begun && patience.is_left(&error) => {
                    continue 'again;
                }
                Err(error) => return Err(failing(error)),
            }
            has_begun = true;
        }
    }
    let changed = connection.total_changes() != before;
    answer.end(if changed { connection.changes() } else { 0 });
    Ok(())
}

/// Returns the values of a row.
pub(crate) fn cells(row: &rusqlite::Row<'_>, columns: usize) -> rusqlite::Result<Vec<SqlCell>> {
    let mut cells = Vec::with_capacity(columns);
    for index in 0..columns {
        cells.push(match row.get_ref(index)? {
            ValueRef::Null => SqlCell::NULL,
            ValueRef::Integer(number) => number.into(),
            ValueRef::Real(number) => SqlCell::float(number),
            ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned().into(),
            ValueRef::Blob(bytes) => SqlCell::Bytes(bytes.to_vec()),
        });
    }
    Ok(cells)
}

/// Binds the parameters of a statement.
pub(crate) fn bind(
    statement: &mut Statement<'_>,
    params: &Params<'_>,
    index: usize,
) -> Result<(), Failure> {
    let count = statement.parameter_count();
    for number in 1..=count {
        let name = statement.parameter_name(number).map(str::to_owned);
        let value = match (params, name) {
            (Params::List(list), _) => list.get(number - 1).ok_or_else(|| {
                let actual = list.len();
                wrong(format!(
                    "statement {}: it takes {count} parameters, and `params` has {actual}",
                    index + 1
                ))
            })?,
            (named, Some(name)) if !name.starts_with('?') => {
                let bare = &name[1..];
                named.value(bare)?.ok_or_else(|| {
                    wrong(format!(
                        "statement {}: it asks for `{name}`; give `params: {{{bare}: …}}`",
                        index + 1
                    ))
                })?
            }
            _ => {
                return Err(wrong(format!(
                    "statement {}: it takes {count} parameters by position; give `params` as a \
                     list",
                    index + 1
                )));
            }
        };
        let bound = statement.raw_bind_parameter(number, Bound(value));
        bound.map_err(|error| failed(&error, Some(index)))?;
    }
    Ok(())
}

/// A value as SQLite stores it: booleans as 0 and 1, lists and maps as JSON text.
struct Bound<'a>(&'a Value);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Value::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Value::Bool(value) => i64::from(*value).into(),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => whole.into(),
                (None, Some(float)) if number.is_f64() => float.into(),
                _ => number.to_string().into(),
            },
            Value::String(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            structured => structured.to_string().into(),
        })
    }
}

impl ToSql for SqlCell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Bytes(bytes) => Ok(ToSqlOutput::Borrowed(ValueRef::Blob(bytes))),
            Self::Value(value) => match Bound(value).to_sql()? {
                ToSqlOutput::Owned(owned) => Ok(ToSqlOutput::Owned(owned)),
                _ => Ok(match value {
                    Value::String(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
                    _ => ToSqlOutput::Borrowed(ValueRef::Null),
                }),
            },
        }
    }
}

/// Converts an error to a failure. `index` is the index of the statement in the step, from 0.
pub(crate) fn failed(error: &rusqlite::Error, index: Option<usize>) -> Failure {
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => FailureKind::DbDeadlock,
        Some(ErrorCode::ConstraintViolation) => FailureKind::DbConstraint,
        Some(ErrorCode::OperationInterrupted) => FailureKind::Timeout,
        Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => FailureKind::Auth,
        Some(ErrorCode::CannotOpen | ErrorCode::NotADatabase) => FailureKind::Config,
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt) => {
            FailureKind::ServerError
        }
        _ => FailureKind::ClientError,
    };
    let message = match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        // The driver's own message repeats the whole statement.
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    };
    let statement = index.map(|index| format!("statement {}: ", index + 1)).unwrap_or_default();
    let code = error.sqlite_error().map(|error| error.extended_code);
    let mut details = json!({"sqlite": {"code": code}});
    if let Some(index) = index {
        details["statement"] = index.into();
    }
    Failure::new(kind, format!("{statement}the database says: {message}")).with_details(details)
}
