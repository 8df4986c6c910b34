//! Reads rows as messages, limited by size.

use noetl_model::{Map, Value};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement, Transaction};

use crate::source::Message;

/// Maximum bytes per read. The batch of rows that exceeds it is the last.
const BYTES_MAX: usize = 16 << 20;

/// Rows in the first batch. The batch size doubles up to 256 while the byte limit allows, so that a
/// few large rows don't arrive with hundreds of others.
const PORTION: i32 = 4;

/// A row read from the table.
pub(super) struct FetchedRow {
    /// Key of the row as text.
    pub(super) key: String,
    pub(super) message: Message,
}

/// Runs a statement and reads its rows up to the byte limit.
pub(super) async fn read(
    transaction: &Transaction<'_>,
    statement: &Statement,
    parameters: &[&(dyn ToSql + Sync)],
    table: &str,
) -> Result<Vec<FetchedRow>, tokio_postgres::Error> {
    let portal = transaction.bind(statement, parameters).await?;
    let mut fetched = Vec::new();
    let (mut bytes, mut portion) = (0, PORTION);
    while bytes < BYTES_MAX {
        let rows = transaction.query_portal(&portal, portion).await?;
        let is_last = i32::try_from(rows.len()).unwrap_or(i32::MAX) < portion;
        for row in &rows {
            let row = message(row, table)?;
            bytes += row.message.body.len();
            fetched.push(row);
        }
        if is_last {
            break;
        }
        portion = (portion * 2).min(256);
    }
    Ok(fetched)
}

fn message(row: &Row, table: &str) -> Result<FetchedRow, tokio_postgres::Error> {
    let key: String = row.try_get(0)?;
    let body: Option<Vec<u8>> = row.try_get(1)?;
    let map = |text: Option<String>| match text.map(|text| serde_json::from_str(&text)) {
        Some(Ok(Value::Object(map))) => map,
        _ => Map::new(),
    };
    let headers = map(row.try_get(3)?).into_iter().map(|(name, value)| match value {
        Value::String(text) => (name, text),
        other => (name, other.to_string()),
    });
    let metadata = Map::from_iter([
        ("table".to_owned(), Value::from(table)),
        ("key".to_owned(), Value::from(key.as_str())),
    ]);
    let message = Message {
        id: format!("{table}:{key}"),
        body: body.unwrap_or_default().into(),
        headers: headers.collect(),
        attributes: map(row.try_get(2)?),
        metadata,
        ack_id: None,
    };
    Ok(FetchedRow { key, message })
}
