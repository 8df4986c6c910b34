//! Execution of a step's statements on one connection.

use std::pin::pin;

use futures::StreamExt;
use noetl_model::{Failure, Value};
use tokio_postgres::Statement as Prepared;

use super::decode::decode_row;
use super::encode::Param;
use super::pool::{Pool, Session, Stopper};
use super::settings::PostgresSettings;
use crate::config::wrong;
use crate::sql::{
    Dialect, Params, Script, ScriptStatement, StatementResults, column_names, number_names,
};

/// Runs all statements, and returns the connection to the pool if it is still usable.
pub(super) async fn run(
    pool: &Pool,
    settings: &PostgresSettings,
    script: &Script<'_>,
    stopper: &Stopper,
    answer: &mut StatementResults,
) -> Result<(), Failure> {
    for part in &script.parts {
        if part.statement.streams {
            return Err(wrong(
                "a step has no stream for `copy` to read from or write to; use `transfer`",
            ));
        }
    }
    let opening = if script.is_atomic { "begin" } else { "" };
    let session = pool.session(settings, opening).await?;
    stopper.watch(&session);
    let done = perform(&session, script, answer).await;
    // The statement is over if it returned all rows or the server rejected it.
    let is_over = done.as_ref().map_or_else(is_refusal, |()| true);
    match is_over {
        true => session.release(),
        false => session.abandon().await,
    }
    done
}

fn is_refusal(failure: &Failure) -> bool {
    failure.details.as_ref().is_some_and(|details| details.get("pg").is_some())
}

async fn perform(
    session: &Session,
    script: &Script<'_>,
    answer: &mut StatementResults,
) -> Result<(), Failure> {
    for part in &script.parts {
        statement(session, part, answer).await?;
    }
    if script.is_atomic {
        let ended = session.client().batch_execute("commit").await;
        ended.map_err(|error| session.failed(&error, None))?;
    }
    Ok(())
}

async fn statement(
    session: &Session,
    part: &ScriptStatement<'_>,
    answer: &mut StatementResults,
) -> Result<(), Failure> {
    let index = answer.index();
    let (text, values) = bound(part)?;
    let prepared = session.client().prepare(&text).await;
    let prepared = prepared.map_err(|error| {
        let failure = session.failed(&error, Some(index));
        explain(failure, part)
    })?;
    let values = fitting(values, part, &prepared, index)?;
    let returns_rows = !prepared.columns().is_empty();
    let names = || column_names(prepared.columns().iter().map(|column| column.name()));
    answer.begin(returns_rows.then(names));
    let params = values.into_iter().map(Param);
    let failed = |error| explain(session.failed(&error, Some(index)), part);
    let rows = session.client().query_raw(&prepared, params).await.map_err(failed)?;
    let mut rows = pin!(rows);
    while let Some(row) = rows.next().await {
        let row = row.map_err(|error| explain(session.failed(&error, Some(index)), part))?;
        answer.row(decode_row(&row)?)?;
    }
    // The command tag of a query counts returned rows, not changed ones.
    let counted = rows.rows_affected().unwrap_or(0);
    let is_query = returns_rows && !part.statement.changes_rows();
    answer.end(if is_query { 0 } else { counted });
    Ok(())
}

/// Returns the statement in the server's syntax, and the values of its parameters.
pub(crate) fn bound<'a>(
    part: &'a ScriptStatement<'_>,
) -> Result<(String, Vec<&'a Value>), Failure> {
    let text = part.statement.text;
    match part.params {
        Params::List(list) => Ok((text.to_owned(), list.iter().collect())),
        params @ Params::Named { .. } => {
            let takes = |name: &str| Ok(params.value(name)?.is_some());
            let (text, names) = number_names(text, Dialect::Postgres, takes)?;
            let mut values = Vec::with_capacity(names.len());
            for name in names {
                values.extend(params.value(name)?);
            }
            Ok((text, values))
        }
    }
}

/// Returns the values for a statement. All statements share one list, and each uses its first
/// values.
fn fitting<'a>(
    mut values: Vec<&'a Value>,
    part: &ScriptStatement<'_>,
    prepared: &Prepared,
    index: usize,
) -> Result<Vec<&'a Value>, Failure> {
    let asked = prepared.params().len();
    if asked > values.len() {
        let count = values.len();
        let named = matches!(part.params, Params::Named { .. });
        let advice = match named {
            true => "give them as a list under `params`",
            false => "give one for each of $1, $2, …",
        };
        return Err(wrong(format!(
            "statement {}: it takes {asked} parameters, and there are {count}; {advice}",
            index + 1
        )));
    }
    values.truncate(asked);
    Ok(values)
}

/// Adds a hint where the server's message doesn't name the solution.
fn explain(mut failure: Failure, part: &ScriptStatement<'_>) -> Failure {
    let state = failure.details.as_ref().and_then(|details| details["pg"]["code"].as_str());
    if state == Some("25001") && part.statement.control == crate::sql::TransactionControl::None {
        failure.message.push_str("; set `autocommit: true` to run the statements one by one");
    }
    failure
}
