//! Execution of a step's statements on one connection.

use duckdb::Statement;
use noetl_model::{Failure, FailureKind, Value};
use serde_json::json;

use super::file::{DuckdbLocation, open};
use super::values::{cells, stored};
use crate::config::wrong;
use crate::own::FileGuard;
use crate::sql::{
    Dialect, Params, Script, ScriptStatement, StatementResults, StopFlag, column_names,
    number_names,
};

/// Runs all statements and closes the database.
pub(super) fn run(
    location: &DuckdbLocation,
    guard: &FileGuard,
    script: &Script<'_>,
    stop: &StopFlag,
    mut answer: StatementResults,
) -> Result<Value, Failure> {
    let opened = open(location, guard, stop)?;
    let batch =
        |text: &str| opened.connection.execute_batch(text).map_err(|error| failed(&error, None));
    if script.is_atomic {
        batch("begin transaction")?;
    }
    for part in &script.parts {
        if stop.is_raised() {
            return Err(Failure::new(FailureKind::Cancelled, "the step was stopped"));
        }
        statement(&opened.connection, part, &mut answer)?;
    }
    if script.is_atomic {
        batch("commit")?;
    }
    Ok(answer.into_value())
}

fn statement(
    connection: &duckdb::Connection,
    part: &ScriptStatement<'_>,
    answer: &mut StatementResults,
) -> Result<(), Failure> {
    let index = answer.index();
    let failing = |error: duckdb::Error| failed(&error, Some(index));
    let (text, names) = match part.params {
        Params::List(_) => (part.statement.text.to_owned(), Vec::new()),
        params @ Params::Named { .. } => {
            let takes = |name: &str| Ok(params.value(name)?.is_some());
            number_names(part.statement.text, Dialect::DuckDb, takes)?
        }
    };
    let mut prepared = connection.prepare(&text).map_err(failing)?;
    bind(&mut prepared, &part.params, &names, index)?;
    let changed = prepared.raw_execute().map_err(failing)?;
    let columns: Vec<String> =
        prepared.schema().fields().iter().map(|field| field.name().clone()).collect();
    if !returns_rows(&part.statement.verb, &columns) {
        answer.begin(None);
        answer.end(changed as u64);
        return Ok(());
    }
    answer.begin(Some(column_names(columns.iter().map(String::as_str))));
    let mut count = 0_u64;
    let mut rows = prepared.raw_query();
    while let Some(row) = rows.next().map_err(failing)? {
        answer.row(cells(row, columns.len()).map_err(failing)?)?;
        count += 1;
    }
    answer.end(if part.statement.changes_rows() { count } else { 0 });
    Ok(())
}

/// Returns `true` if the result of a statement is rows. A statement that changes rows returns their
/// count in a column that DuckDB names `Count`.
fn returns_rows(verb: &str, columns: &[String]) -> bool {
    let asks = matches!(
        verb,
        "select"
            | "values"
            | "from"
            | "table"
            | "show"
            | "describe"
            | "explain"
            | "summarize"
            | "pragma"
            | "call"
            | "pivot"
            | "unpivot"
            | ""
    );
    !columns.is_empty() && (asks || columns != ["Count"])
}

/// Binds the parameters of a statement. `names` lists the names of numbered parameters, in order.
pub(crate) fn bind(
    statement: &mut Statement<'_>,
    params: &Params<'_>,
    names: &[&str],
    index: usize,
) -> Result<(), Failure> {
    let count = statement.parameter_count();
    for number in 1..=count {
        let value = match params {
            Params::List(list) => list.get(number - 1),
            named => match names.get(number - 1) {
                Some(name) => named.value(name)?,
                None => None,
            },
        };
        let value = value.ok_or_else(|| {
            wrong(format!(
                "statement {}: it takes {count} parameters, and not all of them are in `params`",
                index + 1
            ))
        })?;
        let bound = statement.raw_bind_parameter(number, stored(value));
        bound.map_err(|error| failed(&error, Some(index)))?;
    }
    Ok(())
}

/// Converts a DuckDB error to a failure. DuckDB states the kind of error in the first words of its
/// message.
pub(crate) fn failed(error: &duckdb::Error, index: Option<usize>) -> Failure {
    let message = match error {
        duckdb::Error::DuckDBFailure(_, Some(message)) => message.clone(),
        other => other.to_string(),
    };
    let kind = match message.split(" Error").next().unwrap_or_default() {
        "Constraint" => FailureKind::DbConstraint,
        "TransactionContext" | "Transaction" => FailureKind::DbDeadlock,
        "INTERRUPT" | "Interrupt" => FailureKind::Timeout,
        "IO" | "HTTP" => FailureKind::Connection,
        "Permission" => FailureKind::Auth,
        "Out of Memory" | "Internal" | "FATAL" => FailureKind::ServerError,
        _ => FailureKind::ClientError,
    };
    let statement = index.map(|index| format!("statement {}: ", index + 1)).unwrap_or_default();
    let details = match index {
        Some(index) => json!({"statement": index}),
        None => json!({}),
    };
    Failure::new(kind, format!("{statement}the database says: {message}")).with_details(details)
}
