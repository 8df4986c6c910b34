//! Conversion of driver errors to failures that policies match on.

use std::error::Error as _;

use noetl_model::{Failure, FailureKind, Map, Value};
use serde_json::json;
use tokio_postgres::error::{DbError, ErrorPosition};

/// Converts an error to a failure. `index` is the index of the statement in the step, from 0.
pub(crate) fn failed(
    error: &tokio_postgres::Error,
    address: &str,
    index: Option<usize>,
) -> Failure {
    let statement = index.map(|index| format!("statement {}: ", index + 1)).unwrap_or_default();
    if let Some(refused) = error.as_db_error() {
        let kind = kind_of(refused.code().code());
        let retryable = is_retryable(refused.code().code(), &kind);
        let message = format!("{statement}the database says: {}", refused.message());
        let mut failure = Failure::new(kind, message);
        failure.retryable = retryable;
        return failure.with_details(details(refused, index));
    }
    let cause = root_cause(error);
    if error.is_closed() {
        let message = format!("{statement}{address} closed the connection");
        return Failure::new(FailureKind::Connection, message);
    }
    // The driver exposes the kind of error only as text. An I/O or TLS source means the connection.
    let is_connection = error.source().is_some_and(is_io);
    let text = error.to_string();
    if is_connection || text.contains("connecting") || text.contains("TLS") {
        let message = format!("{statement}{address} could not be reached: {cause}");
        return Failure::new(FailureKind::Connection, message);
    }
    if text.contains("timed out") || text.contains("timeout") {
        let message = format!("{statement}{address} could not be reached in time");
        return Failure::new(FailureKind::Connection, message);
    }
    let kind = match text.contains("parameter") || text.contains("configuration") {
        true => FailureKind::Config,
        false => FailureKind::Unknown,
    };
    Failure::new(kind, format!("{statement}{cause}"))
}

fn is_io(error: &(dyn std::error::Error + 'static)) -> bool {
    error.is::<std::io::Error>() || error.source().is_some_and(is_io)
}

fn root_cause(error: &tokio_postgres::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Returns the kind of failure for an SQLSTATE code.
fn kind_of(state: &str) -> FailureKind {
    match state {
        "40001" | "40P01" | "55P03" => FailureKind::DbDeadlock,
        "57014" => FailureKind::Timeout,
        "57P01" | "57P02" | "57P03" | "57P05" | "53300" => FailureKind::Connection,
        "42501" => FailureKind::Auth,
        "3D000" => FailureKind::NotFound,
        _ => match &state[..state.len().min(2)] {
            "08" => FailureKind::Connection,
            "22" | "42" | "25" | "0A" | "2B" | "34" | "3F" => FailureKind::ClientError,
            "23" => FailureKind::DbConstraint,
            "28" => FailureKind::Auth,
            "53" | "58" | "XX" => FailureKind::ServerError,
            _ => FailureKind::Unknown,
        },
    }
}

fn is_retryable(state: &str, kind: &FailureKind) -> bool {
    match kind {
        FailureKind::ServerError => state.starts_with("53"),
        kind => Failure::new(kind.clone(), "").retryable,
    }
}

fn details(error: &DbError, index: Option<usize>) -> Value {
    let state = error.code().code();
    let mut pg = Map::from_iter([
        ("code".to_owned(), state.into()),
        ("sqlstate".to_owned(), state.into()),
        ("severity".to_owned(), error.severity().into()),
    ]);
    let position = match error.position() {
        Some(ErrorPosition::Original(at)) => Some(json!(at)),
        _ => None,
    };
    let texts = [
        ("detail", error.detail()),
        ("hint", error.hint()),
        ("schema", error.schema()),
        ("table", error.table()),
        ("column", error.column()),
        ("constraint", error.constraint()),
    ];
    let texts = texts.into_iter().filter_map(|(key, text)| Some((key, Value::from(text?))));
    for (key, value) in texts.chain(position.map(|at| ("position", at))) {
        pg.insert(key.to_owned(), value);
    }
    match index {
        Some(index) => json!({"pg": pg, "statement": index}),
        None => json!({"pg": pg}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_states_map_to_failure_kinds() {
        let check = |state: &str, kind: &str, retryable: bool| {
            let actual = kind_of(state);
            assert_eq!(actual.as_str(), kind, "{state}");
            assert_eq!(is_retryable(state, &actual), retryable, "{state}");
        };
        check("40001", "db_deadlock", true);
        check("40P01", "db_deadlock", true);
        check("23505", "db_constraint", false);
        check("08006", "connection", true);
        check("57014", "timeout", true);
        check("57P01", "connection", true);
        check("28P01", "auth", false);
        check("42501", "auth", false);
        check("42601", "client_error", false);
        check("22012", "client_error", false);
        check("53100", "server_error", true);
        check("XX000", "server_error", false);
        check("P0001", "unknown", false);
        check("", "unknown", false);
    }
}
