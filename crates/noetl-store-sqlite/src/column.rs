//! Converts columns between SQLite and Rust types.

use noetl_model::{Timestamp, Value};
use noetl_store::Digest;
use rusqlite::types::Type;
use rusqlite::{Error, Row};

pub(crate) fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| Error::IntegralValueOutOfRange(column, number))
}

/// Reads a text column and parses it. Fails if `parse` returns `None`.
pub(crate) fn parsed<T>(
    row: &Row<'_>,
    column: usize,
    parse: impl FnOnce(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    parse(text).ok_or_else(|| unreadable(column, format!("unknown text '{text}'")))
}

pub(crate) fn json(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Value>> {
    let Some(text) = row.get_ref(column)?.as_str_or_null()? else { return Ok(None) };
    serde_json::from_str(text).map(Some).map_err(|error| unreadable(column, error))
}

/// Parses a JSON column that is never null.
pub(crate) fn value(row: &Row<'_>, column: usize) -> rusqlite::Result<Value> {
    json(row, column)?.ok_or_else(|| unreadable(column, "no value"))
}

pub(crate) fn instant(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_micros))
}

pub(crate) fn digest(row: &Row<'_>, column: usize) -> rusqlite::Result<Digest> {
    parsed(row, column, |text| text.parse().ok())
}

/// Returns a JSON value as the text to write.
pub(crate) fn json_text(value: &Option<Value>) -> Option<String> {
    value.as_ref().map(Value::to_string)
}

/// Returns a timestamp in microseconds to write, or `None`.
pub(crate) fn micros(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_micros)
}

/// Converts a size in bytes to an SQLite integer. Sizes never reach `i64::MAX`.
pub(crate) fn size(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Returns the error for a row that this version can't decode.
pub(crate) fn unreadable(
    column: usize,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    Error::FromSqlConversionFailure(column, Type::Text, error.into())
}
