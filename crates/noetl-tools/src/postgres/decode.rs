//! Decodes values from Postgres: the protocol's binary formats, by the type the server reports.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use noetl_model::{Failure, Map, Value};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Kind, Type};

use super::temporal;
use crate::config::wrong;
use crate::sql::SqlCell;

/// Undecoded bytes of a value.
struct Raw<'a>(Option<&'a [u8]>);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(Some(raw)))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Returns the values of a row, in column order.
pub(crate) fn decode_row(row: &Row) -> Result<Vec<SqlCell>, Failure> {
    let mut cells = Vec::with_capacity(row.len());
    for (place, column) in row.columns().iter().enumerate() {
        let raw = row.try_get::<_, Raw<'_>>(place).map_or(None, |raw| raw.0);
        let cell = match raw {
            None => Some(SqlCell::NULL),
            Some(raw) => decode(column.type_(), raw),
        };
        cells.push(cell.ok_or_else(|| {
            let (name, ty) = (column.name(), column.type_().name());
            wrong(format!("column '{name}' is of type {ty}; cast it to text: {name}::text"))
        })?);
    }
    Ok(cells)
}

/// Decodes a value. Returns `None` if the type is unknown or the bytes don't match it.
fn decode(ty: &Type, raw: &[u8]) -> Option<SqlCell> {
    let mut reader = ByteReader(raw);
    match ty.kind() {
        Kind::Domain(inner) => return decode(inner, raw),
        Kind::Enum(_) => return text(raw),
        Kind::Array(element) => return array(element, raw),
        Kind::Composite(fields) => {
            let count = reader.i32()?;
            let mut map = Map::new();
            for field in fields.iter().take(usize::try_from(count).ok()?) {
                reader.i32()?;
                let value = match reader.field()? {
                    None => Value::Null,
                    Some(raw) => decode(field.type_(), raw)?.into_value(),
                };
                map.insert(field.name().to_owned(), value);
            }
            return Some(Value::Object(map).into());
        }
        Kind::Range(bound) => return range(bound, raw).map(SqlCell::from),
        Kind::Multirange(bound) => {
            // The driver reports the type of the range itself here.
            let bound = match bound.kind() {
                Kind::Range(bound) => bound,
                _ => bound,
            };
            let mut ranges = Vec::new();
            for _ in 0..reader.i32()? {
                ranges.push(range(bound, reader.field()??)?);
            }
            return Some(format!("{{{}}}", ranges.join(",")).into());
        }
        _ => {}
    }
    Some(match *ty {
        Type::BOOL => (reader.u8()? != 0).into(),
        Type::INT2 => reader.i16()?.into(),
        Type::INT4 => reader.i32()?.into(),
        Type::INT8 => reader.i64()?.into(),
        Type::OID | Type::XID | Type::CID | Type::REGCLASS | Type::REGTYPE | Type::REGPROC => {
            reader.u32()?.into()
        }
        Type::FLOAT4 => {
            // Parses the shortest decimal form, which avoids the extra digits of a direct
            // conversion to `f64`.
            let float = f32::from_be_bytes(reader.take()?);
            SqlCell::float(float.to_string().parse().ok()?)
        }
        Type::FLOAT8 => SqlCell::float(f64::from_be_bytes(reader.take()?)),
        Type::NUMERIC => numeric(&mut reader)?,
        Type::MONEY => {
            let cents = reader.i64()?;
            let sign = if cents < 0 { "-" } else { "" };
            let cents = cents.unsigned_abs();
            format!("{sign}{}.{:02}", cents / 100, cents % 100).into()
        }
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN | Type::XML => {
            text(raw)?
        }
        Type::CHAR => char::from(reader.u8()?).to_string().into(),
        Type::JSON => document(raw)?,
        Type::JSONB => document(raw.strip_prefix(&[1])?)?,
        Type::JSONPATH => text(raw.strip_prefix(&[1])?)?,
        Type::UUID => uuid(reader.take()?).into(),
        Type::BYTEA => SqlCell::Bytes(raw.to_vec()),
        Type::DATE => temporal::date(reader.i32()?).into(),
        Type::TIME => temporal::time(reader.i64()?).into(),
        Type::TIMETZ => temporal::time_with_zone(reader.i64()?, reader.i32()?).into(),
        Type::TIMESTAMP => temporal::timestamp(reader.i64()?, "").into(),
        Type::TIMESTAMPTZ => temporal::timestamp(reader.i64()?, "+00:00").into(),
        Type::INTERVAL => {
            let (micros, days, months) = (reader.i64()?, reader.i32()?, reader.i32()?);
            temporal::interval(micros, days, months).into()
        }
        Type::INET | Type::CIDR => inet(&mut reader)?.into(),
        Type::MACADDR | Type::MACADDR8 => {
            let parts: Vec<_> = raw.iter().map(|byte| format!("{byte:02x}")).collect();
            parts.join(":").into()
        }
        Type::BIT | Type::VARBIT => bits(&mut reader)?.into(),
        Type::PG_LSN => {
            let place = u64::from_be_bytes(reader.take()?);
            format!("{:X}/{:X}", place >> 32, place & 0xffff_ffff).into()
        }
        Type::POINT => {
            let (x, y) = (f64::from_be_bytes(reader.take()?), f64::from_be_bytes(reader.take()?));
            Value::Array(vec![SqlCell::float(x).into_value(), SqlCell::float(y).into_value()])
                .into()
        }
        Type::VOID => SqlCell::NULL,
        _ => match ty.name() {
            "citext" => text(raw)?,
            "hstore" => hstore(&mut reader)?,
            "ltree" | "lquery" | "ltxtquery" => text(raw.strip_prefix(&[1])?)?,
            _ => return None,
        },
    })
}

/// Reads bytes from the front. Methods return `None` if too few are left.
struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_be_bytes)
    }

    fn i16(&mut self) -> Option<i16> {
        self.take().map(i16::from_be_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_be_bytes)
    }

    /// Reads a length-prefixed field. The inner `None` is null.
    #[expect(clippy::option_option, reason = "too few bytes and null are two things")]
    fn field(&mut self) -> Option<Option<&'a [u8]>> {
        match self.i32()? {
            -1 => Some(None),
            length => self.bytes(usize::try_from(length).ok()?).map(Some),
        }
    }
}

fn text(raw: &[u8]) -> Option<SqlCell> {
    // A server whose encoding is `SQL_ASCII` may send any bytes.
    Some(String::from_utf8_lossy(raw).into_owned().into())
}

/// Decodes a JSON document. If its depth or numbers exceed the parser's limits, returns its text.
fn document(raw: &[u8]) -> Option<SqlCell> {
    match serde_json::from_slice::<Value>(raw) {
        Ok(value) => Some(value.into()),
        Err(_) => text(raw),
    }
}

fn uuid(bytes: [u8; 16]) -> String {
    let digits = |range: std::ops::Range<usize>| {
        bytes[range].iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let parts = [digits(0..4), digits(4..6), digits(6..8), digits(8..10), digits(10..16)];
    parts.join("-")
}

/// Decodes a number from groups of four decimal digits, with the number of decimals of the column.
fn numeric(reader: &mut ByteReader<'_>) -> Option<SqlCell> {
    const NEGATIVE: u16 = 0x4000;
    let groups = reader.i16()?;
    let weight = reader.i16()?;
    let sign = reader.take().map(u16::from_be_bytes)?;
    let decimals = usize::try_from(reader.i16()?).ok()?;
    match sign {
        0 | NEGATIVE => {}
        0xC000 => return Some("NaN".into()),
        0xD000 => return Some("Infinity".into()),
        0xF000 => return Some("-Infinity".into()),
        _ => return None,
    }
    let mut digits = Vec::with_capacity(usize::try_from(groups).ok()?);
    for _ in 0..groups {
        digits.push(reader.i16()?);
    }
    let group = |place: i32| {
        let digit = usize::try_from(place).ok().and_then(|place| digits.get(place));
        digit.copied().unwrap_or(0)
    };
    let mut text = String::new();
    if sign == NEGATIVE {
        text.push('-');
    }
    if weight < 0 {
        text.push('0');
    }
    for place in 0..=i32::from(weight) {
        let group = group(place);
        match place {
            0 => text.push_str(&group.to_string()),
            _ => text.push_str(&format!("{group:04}")),
        }
    }
    if decimals > 0 {
        let mut fraction = String::new();
        let mut place = i32::from(weight) + 1;
        while fraction.len() < decimals {
            // Groups between the decimal point and the first transmitted one are zeros.
            fraction.push_str(&format!("{:04}", group(place)));
            place += 1;
        }
        fraction.truncate(decimals);
        text.push('.');
        text.push_str(&fraction);
    }
    Some(SqlCell::decimal(text))
}

fn array(element: &Type, raw: &[u8]) -> Option<SqlCell> {
    /// Maximum dimensions that the server supports.
    const DIMENSIONS_MAX: usize = 6;
    let mut reader = ByteReader(raw);
    let dimensions = usize::try_from(reader.i32()?).ok()?;
    reader.i32()?;
    reader.i32()?;
    if dimensions == 0 {
        return Some(Value::Array(Vec::new()).into());
    }
    if dimensions > DIMENSIONS_MAX {
        return None;
    }
    let mut lengths = Vec::with_capacity(dimensions);
    for _ in 0..dimensions {
        lengths.push(usize::try_from(reader.i32()?).ok()?);
        reader.i32()?;
    }
    dimension(element, &lengths, &mut reader).map(SqlCell::from)
}

fn dimension(element: &Type, lengths: &[usize], reader: &mut ByteReader<'_>) -> Option<Value> {
    let (length, inner) = lengths.split_first()?;
    let mut items = Vec::new();
    for _ in 0..*length {
        items.push(if inner.is_empty() {
            match reader.field()? {
                None => Value::Null,
                Some(raw) => decode(element, raw)?.into_value(),
            }
        } else {
            dimension(element, inner, reader)?
        });
    }
    Some(Value::Array(items))
}

/// Formats a range in the server's notation, such as `[1,5)`.
fn range(bound: &Type, raw: &[u8]) -> Option<String> {
    const EMPTY: u8 = 0x01;
    const LOWER_IN: u8 = 0x02;
    const UPPER_IN: u8 = 0x04;
    const LOWER_OPEN: u8 = 0x08;
    const UPPER_OPEN: u8 = 0x10;
    let mut reader = ByteReader(raw);
    let flags = reader.u8()?;
    let has = |flag: u8| flags & flag != 0;
    if has(EMPTY) {
        return Some("empty".to_owned());
    }
    let mut end = |open: bool| {
        if open {
            return Some(String::new());
        }
        let value = decode(bound, reader.field()??)?.into_value();
        Some(crate::config::plain(&value))
    };
    let (lower, upper) = (end(has(LOWER_OPEN))?, end(has(UPPER_OPEN))?);
    let (open, close) =
        (if has(LOWER_IN) { '[' } else { '(' }, if has(UPPER_IN) { ']' } else { ')' });
    Some(format!("{open}{lower},{upper}{close}"))
}

fn inet(reader: &mut ByteReader<'_>) -> Option<String> {
    reader.u8()?;
    let bits = reader.u8()?;
    let is_cidr = reader.u8()? != 0;
    let (address, full) = match reader.u8()? {
        4 => (IpAddr::V4(Ipv4Addr::from(reader.take::<4>()?)), 32),
        16 => (IpAddr::V6(Ipv6Addr::from(reader.take::<16>()?)), 128),
        _ => return None,
    };
    Some(if is_cidr || bits != full { format!("{address}/{bits}") } else { address.to_string() })
}

fn bits(reader: &mut ByteReader<'_>) -> Option<String> {
    let count = usize::try_from(reader.i32()?).ok()?;
    if reader.0.len() < count.div_ceil(8) {
        return None;
    }
    let bit = |place: usize| match reader.0[place / 8] >> (7 - place % 8) & 1 {
        0 => '0',
        _ => '1',
    };
    Some((0..count).map(bit).collect())
}

fn hstore(reader: &mut ByteReader<'_>) -> Option<SqlCell> {
    let mut map = Map::new();
    for _ in 0..reader.i32()? {
        let key = String::from_utf8_lossy(reader.field()??).into_owned();
        let value = reader.field()?.map(|raw| String::from_utf8_lossy(raw).into_owned());
        map.insert(key, value.map_or(Value::Null, Value::String));
    }
    Some(Value::Object(map).into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn number(groups: &[i16], weight: i16, sign: u16, decimals: i16) -> Value {
        let mut raw = Vec::new();
        raw.extend(i16::try_from(groups.len()).unwrap().to_be_bytes());
        raw.extend(weight.to_be_bytes());
        raw.extend(sign.to_be_bytes());
        raw.extend(decimals.to_be_bytes());
        raw.extend(groups.iter().flat_map(|group| group.to_be_bytes()));
        decode(&Type::NUMERIC, &raw).unwrap().into_value()
    }

    #[test]
    fn numbers_keep_every_digit() {
        assert_eq!(number(&[], 0, 0, 0), json!(0));
        assert_eq!(number(&[1], 0, 0, 0), json!(1));
        assert_eq!(number(&[1], 1, 0, 0), json!(10_000));
        assert_eq!(number(&[1, 2345], 1, 0x4000, 0), json!(-12_345));
        assert_eq!(number(&[5000], -1, 0, 1), json!(0.5));
        assert_eq!(number(&[1], -2, 0, 8), json!(0.000_000_01));
        assert_eq!(number(&[1], -3, 0, 12), json!(0.000_000_000_001));
        assert_eq!(number(&[1, 5000], 0, 0, 2), json!(1.5));
        let long = number(&[1234, 5678, 9012, 3456, 7890], 4, 0, 0);
        assert_eq!(long, json!("12345678901234567890").as_str().unwrap().parse::<u64>().unwrap());
        assert_eq!(number(&[], 0, 0xC000, 0), json!("NaN"));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(raw in prop::collection::vec(any::<u8>(), 0..40)) {
            for ty in [
                Type::NUMERIC, Type::JSONB, Type::INT4_ARRAY, Type::INT4_RANGE, Type::INET,
                Type::VARBIT, Type::TIMESTAMPTZ, Type::INTERVAL, Type::DATE, Type::UUID,
                Type::BOOL, Type::TIMETZ, Type::INT4MULTI_RANGE, Type::TS_VECTOR,
            ] {
                let _ = decode(&ty, &raw);
            }
        }
    }
}
