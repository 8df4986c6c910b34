//! Conversion of values to and from DuckDB.

use duckdb::types::{TimeUnit, Value as Stored};
use noetl_model::{Map, Value};

use crate::config::plain;
use crate::postgres::temporal;
use crate::sql::SqlCell;

/// Days and microseconds from 1970-01-01, the epoch of DuckDB, to 2000-01-01.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_MICROS: i64 = 946_684_800_000_000;

/// Returns the values of a row.
pub(crate) fn cells(row: &duckdb::Row<'_>, columns: usize) -> duckdb::Result<Vec<SqlCell>> {
    (0..columns).map(|place| Ok(cell(row.get_ref(place)?.to_owned()))).collect()
}

fn cell(value: Stored) -> SqlCell {
    match value {
        Stored::Null => SqlCell::NULL,
        Stored::Boolean(value) => value.into(),
        Stored::TinyInt(number) => number.into(),
        Stored::SmallInt(number) => number.into(),
        Stored::Int(number) => number.into(),
        Stored::BigInt(number) => number.into(),
        Stored::HugeInt(number) => SqlCell::decimal(number.to_string()),
        Stored::UHugeInt(number) => SqlCell::decimal(number.to_string()),
        Stored::UTinyInt(number) => number.into(),
        Stored::USmallInt(number) => number.into(),
        Stored::UInt(number) => number.into(),
        Stored::UBigInt(number) => number.into(),
        // Parses the shortest decimal form, which avoids the extra digits of a direct conversion to
        // `f64`.
        Stored::Float(number) => {
            SqlCell::float(number.to_string().parse().unwrap_or_else(|_| f64::from(number)))
        }
        Stored::Double(number) => SqlCell::float(number),
        Stored::Decimal(number) => SqlCell::decimal(number.to_string()),
        Stored::Timestamp(unit, count) => {
            temporal::timestamp(micros(unit, count).saturating_sub(EPOCH_MICROS), "").into()
        }
        Stored::Text(text) | Stored::Enum(text) => text.into(),
        Stored::Blob(bytes) | Stored::Geometry(bytes) => SqlCell::Bytes(bytes),
        Stored::Date32(days) => temporal::date(days.saturating_sub(EPOCH_DAYS)).into(),
        Stored::Time64(unit, count) => temporal::time(micros(unit, count)).into(),
        Stored::Interval { months, days, nanos } => {
            temporal::interval(nanos / 1000, days, months).into()
        }
        Stored::List(items) | Stored::Array(items) => {
            Value::Array(items.into_iter().map(|item| cell(item).into_value()).collect()).into()
        }
        Stored::Struct(fields) => {
            let fields = fields.iter();
            let map: Map = fields
                .map(|(name, value)| (name.clone(), cell(value.clone()).into_value()))
                .collect();
            Value::Object(map).into()
        }
        Stored::Map(entries) => {
            let entries = entries.iter();
            let map: Map = entries
                .map(|(key, value)| {
                    (plain(&cell(key.clone()).into_value()), cell(value.clone()).into_value())
                })
                .collect();
            Value::Object(map).into()
        }
        Stored::Union(value) => cell(*value),
        // A type that a later version of DuckDB adds.
        other => format!("{other:?}").into(),
    }
}

fn micros(unit: TimeUnit, count: i64) -> i64 {
    unit.to_micros(count)
}

/// Converts a value for DuckDB. Lists and maps become JSON text.
pub(super) fn stored(value: &Value) -> Stored {
    match value {
        Value::Null => Stored::Null,
        Value::Bool(value) => Stored::Boolean(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(whole), _, _) => Stored::BigInt(whole),
            (None, Some(whole), _) => Stored::UBigInt(whole),
            (None, None, Some(float)) => Stored::Double(float),
            (None, None, None) => Stored::Text(number.to_string()),
        },
        Value::String(text) => Stored::Text(text.clone()),
        structured => Stored::Text(structured.to_string()),
    }
}

/// Converts a cell of another database for DuckDB.
pub(crate) fn stored_cell(cell: &SqlCell) -> Stored {
    match cell {
        SqlCell::Value(value) => stored(value),
        SqlCell::Bytes(bytes) => Stored::Blob(bytes.clone()),
    }
}
