//! Columns whose Rust types are ours: times as microseconds, both with and without a zone.

use std::time::Duration;

use noetl_model::{Timestamp, Value};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::{Oid, PgInterval};
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgRow, PgTypeInfo, PgValueRef};
use sqlx::{Decode, Encode, Postgres, Row, Type};

/// Microseconds from 1970 to 2000, where the database's count begins.
const EPOCH_2000: i64 = 946_684_800_000_000;

/// A moment in a `timestamptz` column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At(pub(crate) Timestamp);

/// The first moment the database can hold, in its year 4713 BC, as microseconds from 1970.
const FIRST: i64 = -210_866_803_200_000_000;

/// The longest time that is added to or taken from the present: a thousand years, which no row of
/// the database's own making is older than, and which no sum overflows with.
const LONGEST: i64 = 1000 * 366 * 24 * 3600 * 1_000_000;

impl At {
    /// The moment, or the first that the database can hold.
    pub(crate) fn within(at: Timestamp) -> Self {
        Self(at.max(Timestamp::from_micros(FIRST)))
    }
}

/// A span of time that can be added to the present and taken from it.
pub(crate) fn interval(span: Duration) -> PgInterval {
    let microseconds = i64::try_from(span.as_micros()).unwrap_or(LONGEST).min(LONGEST);
    PgInterval { months: 0, days: 0, microseconds }
}

/// A moment in a `timestamp` column, which holds UTC.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Utc(pub(crate) Timestamp);

impl Utc {
    /// The moment, or the first that the database can hold.
    pub(crate) fn within(at: Timestamp) -> Self {
        Self(At::within(at).0)
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

// The numbers by which every Postgres knows these types and the arrays of them.
time_column!(At, 1184, 1185);
time_column!(Utc, 1114, 1115);

/// A number that is never negative.
pub(crate) fn number(row: &PgRow, index: usize) -> Result<u64, sqlx::Error> {
    let number: i64 = row.try_get(index)?;
    u64::try_from(number).map_err(unreadable)
}

/// A small number that is never negative.
pub(crate) fn small(row: &PgRow, index: usize) -> Result<u32, sqlx::Error> {
    let number: i32 = row.try_get(index)?;
    u32::try_from(number).map_err(unreadable)
}

/// A number that a `bigint` holds, or none.
pub(crate) fn optional_count(row: &PgRow, index: usize) -> Result<Option<u32>, sqlx::Error> {
    let number: Option<i64> = row.try_get(index)?;
    number.map(|number| u32::try_from(number).map_err(unreadable)).transpose()
}

/// A count, which a `bigint` holds with room to spare.
pub(crate) fn count(row: &PgRow, index: usize) -> Result<u32, sqlx::Error> {
    u32::try_from(number(row, index)?).map_err(unreadable)
}

/// A text that stands for one of our values.
pub(crate) fn parsed<T>(
    row: &PgRow,
    index: usize,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, sqlx::Error> {
    let text: &str = row.try_get(index)?;
    parse(text).ok_or_else(|| unreadable(format!("`{text}` is not a value of this column")))
}

/// A JSON column that was read as text.
pub(crate) fn json(row: &PgRow, index: usize) -> Result<Option<Value>, sqlx::Error> {
    let text: Option<&str> = row.try_get(index)?;
    text.map(|text| serde_json::from_str(text).map_err(unreadable)).transpose()
}

/// A JSON column that is never null.
pub(crate) fn value(row: &PgRow, index: usize) -> Result<Value, sqlx::Error> {
    Ok(json(row, index)?.unwrap_or(Value::Null))
}

/// A moment, or none.
pub(crate) fn instant(row: &PgRow, index: usize) -> Result<Option<Timestamp>, sqlx::Error> {
    Ok(row.try_get::<Option<At>, _>(index)?.map(|at| at.0))
}

/// A size in bytes, which never gets near the largest signed number.
pub(crate) fn size(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// A JSON value as the text that is bound for it.
pub(crate) fn json_text(value: Option<&Value>) -> Option<String> {
    value.map(Value::to_string)
}

/// A row that this version cannot read.
pub(crate) fn unreadable(error: impl Into<BoxDynError>) -> sqlx::Error {
    sqlx::Error::Decode(error.into())
}
