//! Channel between the two sides of a transfer, and the write plan of the target.

use std::sync::{Arc, OnceLock};

use noetl_model::{Failure, FailureKind, Map, Value};
use tokio::sync::mpsc;

use crate::config::{self, type_name, wrong};
use crate::sql::{SqlCell, quoted, size_of};

/// Capacity of the channel in batches: one being written, one ready.
const BATCHES: usize = 2;

/// Maximum rows and bytes of a batch. Many rows make a write efficient, and the limit in bytes
/// bounds large rows.
const BATCH_ROWS: usize = 1000;
const BATCH_BYTES: usize = 256 * 1024;

pub(super) type Row = Vec<SqlCell>;

/// Messages of a source, in this order: the columns, rows, and the end.
#[derive(Debug)]
pub(super) enum RowMessage {
    Columns(Vec<String>),
    Rows(Vec<Row>),
    /// End of the rows. Without it, the source failed and the target must not commit.
    End,
}

/// Source's end of the channel.
pub(super) struct RowSender {
    sender: mpsc::Sender<RowMessage>,
    columns: Arc<OnceLock<Vec<String>>>,
    rows: Vec<Row>,
    bytes: usize,
}

/// Target's end of the channel.
pub(super) struct RowReceiver(mpsc::Receiver<RowMessage>);

pub(super) fn channel() -> (RowSender, RowReceiver) {
    let (sender, receiver) = mpsc::channel(BATCHES);
    let flow = RowSender { sender, columns: Arc::default(), rows: Vec::new(), bytes: 0 };
    (flow, RowReceiver(receiver))
}

/// The target has ended. Its own failure contains the reason.
pub(super) struct ReceiverClosed;

/// Kind and message of the failure of a source that stopped only because its target ended.
const GONE: &str = "the target is gone";

impl From<ReceiverClosed> for Failure {
    fn from(_: ReceiverClosed) -> Self {
        Failure::new(FailureKind::Other(GONE.to_owned()), GONE)
    }
}

/// Discards the failure of a source whose target ended, so that the target's failure is reported.
pub(super) fn unless_gone(failure: Failure) -> Result<(), Failure> {
    match &failure.kind {
        FailureKind::Other(kind) if kind == GONE => Ok(()),
        _ => Err(failure),
    }
}

impl RowSender {
    /// Returns the cell that contains the columns once the source knows them.
    pub(super) fn columns(&self) -> Arc<OnceLock<Vec<String>>> {
        Arc::clone(&self.columns)
    }

    /// Sends the columns of the rows.
    pub(super) async fn begin(&mut self, columns: Vec<String>) -> Result<(), ReceiverClosed> {
        let _ = self.columns.set(columns.clone());
        self.sender.send(RowMessage::Columns(columns)).await.map_err(|_| ReceiverClosed)
    }

    /// Sends a row, in batches. Waits while the channel is full.
    pub(super) async fn row(&mut self, row: Row) -> Result<(), ReceiverClosed> {
        match self.push(row) {
            Some(rows) => {
                self.sender.send(RowMessage::Rows(rows)).await.map_err(|_| ReceiverClosed)
            }
            None => Ok(()),
        }
    }

    /// Sends the last batch and the end.
    pub(super) async fn end(mut self) -> Result<(), ReceiverClosed> {
        let rows = std::mem::take(&mut self.rows);
        if !rows.is_empty() {
            self.sender.send(RowMessage::Rows(rows)).await.map_err(|_| ReceiverClosed)?;
        }
        self.sender.send(RowMessage::End).await.map_err(|_| ReceiverClosed)
    }

    /// Like [`RowSender::begin`], on a thread that may block.
    pub(super) fn begin_blocking(&mut self, columns: Vec<String>) -> Result<(), ReceiverClosed> {
        let _ = self.columns.set(columns.clone());
        self.sender.blocking_send(RowMessage::Columns(columns)).map_err(|_| ReceiverClosed)
    }

    /// Like [`RowSender::row`], on a thread that may block.
    pub(super) fn row_blocking(&mut self, row: Row) -> Result<(), ReceiverClosed> {
        match self.push(row) {
            Some(rows) => {
                self.sender.blocking_send(RowMessage::Rows(rows)).map_err(|_| ReceiverClosed)
            }
            None => Ok(()),
        }
    }

    /// Like [`RowSender::end`], on a thread that may block.
    pub(super) fn end_blocking(mut self) -> Result<(), ReceiverClosed> {
        let rows = std::mem::take(&mut self.rows);
        if !rows.is_empty() {
            self.sender.blocking_send(RowMessage::Rows(rows)).map_err(|_| ReceiverClosed)?;
        }
        self.sender.blocking_send(RowMessage::End).map_err(|_| ReceiverClosed)
    }

    fn push(&mut self, row: Row) -> Option<Vec<Row>> {
        self.bytes += row.iter().map(cell_size).sum::<usize>();
        self.rows.push(row);
        if self.rows.len() < BATCH_ROWS && self.bytes < BATCH_BYTES {
            return None;
        }
        self.bytes = 0;
        Some(std::mem::take(&mut self.rows))
    }
}

fn cell_size(cell: &SqlCell) -> usize {
    match cell {
        SqlCell::Value(value) => size_of(value),
        SqlCell::Bytes(bytes) => bytes.len(),
    }
}

impl RowReceiver {
    /// Receives the next message. Fails if the source ended without [`RowMessage::End`].
    pub(super) async fn next(&mut self) -> Result<RowMessage, Failure> {
        self.0.recv().await.ok_or_else(cut_off)
    }

    /// Like [`RowReceiver::next`], on a thread that may block.
    pub(super) fn next_blocking(&mut self) -> Result<RowMessage, Failure> {
        self.0.blocking_recv().ok_or_else(cut_off)
    }

    /// Receives the columns, which come first.
    pub(super) async fn columns(&mut self) -> Result<Vec<String>, Failure> {
        match self.next().await? {
            RowMessage::Columns(columns) => Ok(columns),
            RowMessage::Rows(_) | RowMessage::End => Err(cut_off()),
        }
    }

    /// Like [`RowReceiver::columns`], on a thread that may block.
    pub(super) fn columns_blocking(&mut self) -> Result<Vec<String>, Failure> {
        match self.next_blocking()? {
            RowMessage::Columns(columns) => Ok(columns),
            RowMessage::Rows(_) | RowMessage::End => Err(cut_off()),
        }
    }
}

fn cut_off() -> Failure {
    Failure::new(FailureKind::Unknown, "the source ended half way; nothing was written")
}

/// Write plan of a target.
#[derive(Debug, Clone)]
pub(super) struct WritePlan {
    pub(super) into: WriteTarget,
    /// Names of the target's columns, by source column or by index.
    renames: Option<Renames>,
}

#[derive(Debug, Clone)]
pub(super) enum WriteTarget {
    Table {
        /// Name of the table, as written in the settings.
        table: String,
        mode: WriteMode,
    },
    /// A statement that runs once per row, with its columns as named parameters.
    Query(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WriteMode {
    Append,
    Replace,
    /// Overwrites rows with the same key.
    Upsert(Vec<String>),
}

#[derive(Debug, Clone)]
enum Renames {
    Places(Vec<String>),
    Names(Vec<(String, String)>),
}

impl WritePlan {
    pub(super) fn read(settings: &Map) -> Result<Self, Failure> {
        let renames = match settings.get("columns") {
            None | Some(Value::Null) => None,
            Some(list @ Value::Array(_)) => Some(Renames::Places(names("columns", list)?)),
            Some(Value::Object(map)) => {
                let pairs = map.iter().map(|(target, source)| match source {
                    Value::String(source) => Ok((target.clone(), source.clone())),
                    other => Err(wrong(format!(
                        "`columns.{target}` must name a column of the source, not be {}",
                        type_name(other)
                    ))),
                });
                Some(Renames::Names(pairs.collect::<Result<_, _>>()?))
            }
            Some(other) => {
                let actual = type_name(other);
                return Err(wrong(format!("`columns` must be a list or a map, not {actual}")));
            }
        };
        let table = config::text(settings, "table")?;
        let query = config::first(settings, &["query", "command", "sql"]);
        let into = match (table, query) {
            (Some(table), None) if !table.trim().is_empty() => {
                WriteTarget::Table { table: table.trim().to_owned(), mode: mode(settings)? }
            }
            (None, Some((_, Value::String(query)))) => WriteTarget::Query(query.clone()),
            _ => return Err(wrong("needs either a `table` or a `query`")),
        };
        Ok(Self { into, renames })
    }

    pub(super) fn mode(&self) -> &'static str {
        match &self.into {
            WriteTarget::Query(_) => "query",
            WriteTarget::Table { mode: WriteMode::Append, .. } => "append",
            WriteTarget::Table { mode: WriteMode::Replace, .. } => "replace",
            WriteTarget::Table { mode: WriteMode::Upsert(_), .. } => "upsert",
        }
    }

    /// Returns the target's column names, each with the index of its source column.
    pub(super) fn columns(&self, source: &[String]) -> Result<Vec<(String, usize)>, Failure> {
        let columns: Vec<(String, usize)> = match &self.renames {
            None => source.iter().cloned().zip(0..).collect(),
            Some(Renames::Places(names)) if names.len() == source.len() => {
                names.iter().cloned().zip(0..).collect()
            }
            Some(Renames::Places(names)) => {
                return Err(wrong(format!(
                    "`columns` lists {} names, and the source has {} columns",
                    names.len(),
                    source.len()
                )));
            }
            Some(Renames::Names(pairs)) => {
                let renamed = pairs.iter().map(|(target, name)| {
                    let place = source.iter().position(|column| column == name);
                    place.map(|place| (target.clone(), place)).ok_or_else(|| {
                        wrong(format!(
                            "`columns.{target}`: the source has no column '{name}', only {}",
                            source.join(", ")
                        ))
                    })
                });
                renamed.collect::<Result<_, _>>()?
            }
        };
        if columns.is_empty() {
            return Err(wrong("the source has no columns; its query returns no rows"));
        }
        Ok(columns)
    }
}

/// Returns the cells of a row for the target's columns, in their order.
pub(super) fn picked(row: &Row, columns: &[(String, usize)]) -> Row {
    let take = |place: usize| row.get(place).cloned().unwrap_or(SqlCell::NULL);
    columns.iter().map(|(_, place)| take(*place)).collect()
}

fn mode(settings: &Map) -> Result<WriteMode, Failure> {
    match config::text(settings, "mode")?.unwrap_or("append") {
        "append" | "insert" => Ok(WriteMode::Append),
        "replace" | "overwrite" => Ok(WriteMode::Replace),
        "upsert" | "merge" => {
            let keys = match config::first(settings, &["key", "keys"]) {
                Some((_, Value::String(key))) => vec![key.clone()],
                Some((name, list @ Value::Array(_))) => names(name, list)?,
                _ => Vec::new(),
            };
            match keys.is_empty() {
                true => {
                    Err(wrong("`mode: upsert` needs `key`: the columns that make a row unique"))
                }
                false => Ok(WriteMode::Upsert(keys)),
            }
        }
        other => Err(wrong(format!("`mode` must be append, replace or upsert, not '{other}'"))),
    }
}

fn names(key: &str, list: &Value) -> Result<Vec<String>, Failure> {
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = items.iter().map(|item| match item {
        Value::String(text) => Ok(text.clone()),
        other => Err(wrong(format!("`{key}` must list texts, not {}", type_name(other)))),
    });
    texts.collect()
}

/// Joins quoted names with commas.
pub(super) fn list(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let quoted: Vec<_> = names.into_iter().map(|name| quoted(name.as_ref(), false)).collect();
    quoted.join(", ")
}

/// Returns the `on conflict` clause of an upsert.
pub(super) fn on_conflict(columns: &[(String, usize)], keys: &[String]) -> String {
    let rest = columns.iter().map(|(name, _)| name).filter(|name| !keys.contains(name));
    let sets: Vec<_> = rest
        .map(|name| {
            let name = quoted(name, false);
            format!("{name} = excluded.{name}")
        })
        .collect();
    let action = match sets.is_empty() {
        true => "do nothing".to_owned(),
        false => format!("do update set {}", sets.join(", ")),
    };
    format!("on conflict ({}) {action}", list(keys))
}
