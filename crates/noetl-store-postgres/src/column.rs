//! Encodes and decodes columns: timestamps in microseconds with and without time zone, numbers, and
//! JSON.

use std::time::Duration;

use noetl_model::{Timestamp, Value};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::{Oid, PgInterval};
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgRow, PgTypeInfo, PgValueRef};
use sqlx::{Decode, Encode, Postgres, Row, Type};

/// Microseconds from 1970 to 2000, which is the epoch of Postgres timestamps.
const EPOCH_2000: i64 = 946_684_800_000_000;

/// Value of a `timestamptz` column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PgTimestamptz(pub(crate) Timestamp);

/// Earliest timestamp that Postgres can store, in 4713 BC, as microseconds since 1970.
const FIRST: i64 = -210_866_803_200_000_000;

/// Longest interval that is added to or subtracted from the current time, in microseconds: a
/// thousand years. No row written by the database is older, and no sum overflows.
const LONGEST: i64 = 1000 * 366 * 24 * 3600 * 1_000_000;

impl PgTimestamptz {
    /// Returns the timestamp, or the earliest one that Postgres can store if that is later.
    pub(crate) fn clamped(at: Timestamp) -> Self {
        Self(at.max(Timestamp::from_micros(FIRST)))
    }
}

/// Converts a duration to an interval, limited so that adding it to or subtracting it from the
/// current time can't overflow.
pub(crate) fn interval(span: Duration) -> PgInterval {
    let microseconds = i64::try_from(span.as_micros()).unwrap_or(LONGEST).min(LONGEST);
    PgInterval { months: 0, days: 0, microseconds }
}

/// Value of a `timestamp` column, which is in UTC.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PgTimestamp(pub(crate) Timestamp);

impl PgTimestamp {
    /// Returns the timestamp, or the earliest one that Postgres can store if that is later.
    pub(crate) fn clamped(at: Timestamp) -> Self {
        Self(PgTimestamptz::clamped(at).0)
    }
}

fn encode(at: Timestamp, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
    let micros = at.as_micros().checked_sub(EPOCH_2000).ok_or("a time before the database's")?;
    <i64 as Encode<'_, Postgres>>::encode(micros, buffer)
}

fn decode(value: PgValueRef<'_>) -> Result<Timestamp, BoxDynError> {
    let bytes = value.as_bytes()?;
    let micros = i64::from_be_bytes(bytes.try_into()?);
    Ok(Timestamp::from_micros(micros.saturating_add(EPOCH_2000)))
}

macro_rules! time_column {
    ($type:ident, $oid:literal, $array:literal) => {
        impl Type<Postgres> for $type {
            fn type_info() -> PgTypeInfo {
                PgTypeInfo::with_oid(Oid($oid))
            }

            fn compatible(found: &PgTypeInfo) -> bool {
                found.oid() == Some(Oid($oid))
            }
        }

        impl PgHasArrayType for $type {
            fn array_type_info() -> PgTypeInfo {
                PgTypeInfo::with_oid(Oid($array))
            }
        }

        impl Encode<'_, Postgres> for $type {
            fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
                encode(self.0, buffer)
            }
        }

        impl Decode<'_, Postgres> for $type {
            fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
                decode(value).map(Self)
            }
        }
    };
}

// OIDs of these types and of their arrays, which are the same on every Postgres server.
time_column!(PgTimestamptz, 1184, 1185);
time_column!(PgTimestamp, 1114, 1115);

pub(crate) fn number(row: &PgRow, index: usize) -> Result<u64, sqlx::Error> {
    let number: i64 = row.try_get(index)?;
    u64::try_from(number).map_err(unreadable)
}

pub(crate) fn small(row: &PgRow, index: usize) -> Result<u32, sqlx::Error> {
    let number: i32 = row.try_get(index)?;
    u32::try_from(number).map_err(unreadable)
}

/// Reads a nullable `bigint` as `u32`. Fails if it is out of range.
pub(crate) fn optional_count(row: &PgRow, index: usize) -> Result<Option<u32>, sqlx::Error> {
    let number: Option<i64> = row.try_get(index)?;
    number.map(|number| u32::try_from(number).map_err(unreadable)).transpose()
}

/// Reads a `bigint` as `u32`. Fails if it is out of range.
pub(crate) fn count(row: &PgRow, index: usize) -> Result<u32, sqlx::Error> {
    u32::try_from(number(row, index)?).map_err(unreadable)
}

/// Reads a text column and parses it. Fails if `parse` returns `None`.
pub(crate) fn parsed<T>(
    row: &PgRow,
    index: usize,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, sqlx::Error> {
    let text: &str = row.try_get(index)?;
    parse(text).ok_or_else(|| unreadable(format!("`{text}` is not a value of this column")))
}

/// Parses a nullable JSON column that was read as text.
pub(crate) fn json(row: &PgRow, index: usize) -> Result<Option<Value>, sqlx::Error> {
    let text: Option<&str> = row.try_get(index)?;
    text.map(|text| serde_json::from_str(text).map_err(unreadable)).transpose()
}

/// Parses a JSON column. Returns [`Value::Null`] for SQL `null`.
pub(crate) fn value(row: &PgRow, index: usize) -> Result<Value, sqlx::Error> {
    Ok(json(row, index)?.unwrap_or(Value::Null))
}

/// Reads a nullable `timestamptz` column.
pub(crate) fn instant(row: &PgRow, index: usize) -> Result<Option<Timestamp>, sqlx::Error> {
    Ok(row.try_get::<Option<PgTimestamptz>, _>(index)?.map(|at| at.0))
}

/// Converts a size in bytes to a `bigint`. Sizes never reach `i64::MAX`.
pub(crate) fn size(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Returns a JSON value as the text to bind.
pub(crate) fn json_text(value: Option<&Value>) -> Option<String> {
    value.map(Value::to_string)
}

/// Returns the error for a row that this version can't decode.
pub(crate) fn unreadable(error: impl Into<BoxDynError>) -> sqlx::Error {
    sqlx::Error::Decode(error.into())
}
