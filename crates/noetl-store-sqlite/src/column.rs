//! Columns that are more to us than to SQLite.

use noetl_model::Value;
use rusqlite::types::Type;
use rusqlite::{Error, Row};

/// A number that is never negative.
pub(crate) fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| Error::IntegralValueOutOfRange(column, number))
}

/// A text that is one of a set.
pub(crate) fn parsed<T>(
    row: &Row<'_>,
    column: usize,
    parse: impl FnOnce(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    parse(text).ok_or_else(|| unreadable(column, format!("unknown text '{text}'")))
}

/// A JSON text.
pub(crate) fn json(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Value>> {
    let Some(text) = row.get_ref(column)?.as_str_or_null()? else { return Ok(None) };
    serde_json::from_str(text).map(Some).map_err(|error| unreadable(column, error))
}

/// A JSON text to write.
pub(crate) fn json_text(value: &Option<Value>) -> Option<String> {
    value.as_ref().map(Value::to_string)
}

/// A row that this version cannot read.
pub(crate) fn unreadable(
    column: usize,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    Error::FromSqlConversionFailure(column, Type::Text, error.into())
}
