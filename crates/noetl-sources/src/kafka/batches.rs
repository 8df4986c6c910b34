//! Parses record batches of a fetch response and converts records to messages.
//!
//! Skips the records of aborted transactions and control records.

mod vet;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf as _, Bytes};
use kafka_protocol::messages::fetch_response::AbortedTransaction;
use kafka_protocol::records::{Record, RecordBatchDecoder, TimestampType};
use noetl_model::{Map, Value};

use super::cluster::TopicPartition;
use super::compression::decompress;
use crate::source::Message;

/// Size of a batch header in bytes, and of its prefix that includes the batch length.
const HEADER: usize = 61;
const LENGTH_END: usize = 12;

/// The only supported batch format, used since Kafka 0.11.
const MAGIC: i8 = 2;

/// Minimum size of a record in bytes.
const RECORD_MIN: usize = 7;

/// Records of one partition in a fetch response.
#[derive(Debug, Default)]
pub(super) struct Batches {
    /// Visible records with their offsets.
    pub(super) records: Vec<Record>,
    /// Next offset to fetch; `None` if the response had no complete batch.
    pub(super) next: Option<i64>,
}

/// Reads all complete batches. The last one may be truncated; the next fetch returns it completely.
pub(super) fn read(bytes: &Bytes, aborted: &[AbortedTransaction]) -> Result<Batches> {
    let mut begun: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for transaction in aborted {
        begun.entry(transaction.first_offset).or_default().push(transaction.producer_id.0);
    }
    let mut given_up = BTreeSet::new();
    let mut batches = Batches::default();
    let mut rest = bytes.clone();
    while let Some(header) = Header::read(&rest)? {
        let batch = rest.split_to(header.length);
        let last = header.base + i64::from(header.last);
        let is_after = batches.next.is_none_or(|next| header.base >= next);
        ensure!(is_after, "the batch at offset {} comes after a later one", header.base);
        while let Some(first) = begun.first_entry().filter(|first| *first.key() <= last) {
            given_up.extend(first.remove());
        }
        let whole = format!("the batch at offset {}", header.base);
        if header.is_control {
            let records = header.records(batch).context(whole)?;
            if records.first().is_some_and(is_giving_up) {
                given_up.remove(&header.producer);
            }
        } else if !(header.is_transactional && given_up.contains(&header.producer)) {
            batches.records.extend(header.records(batch).context(whole)?);
        }
        batches.next = Some(last + 1);
    }
    Ok(batches)
}

/// Returns `true` if a control record aborts a transaction. Its key is two 16-bit numbers: a
/// version and the type, which is 0 for an abort.
fn is_giving_up(mark: &Record) -> bool {
    let key = mark.key.as_deref().and_then(|key| key.get(2..4));
    key == Some(&[0, 0])
}

struct Header {
    base: i64,
    /// Size of the batch in bytes, including the header.
    length: usize,
    /// Offset of the last record relative to the first. Compaction may have removed that record.
    last: i32,
    /// Timestamp of the first record in milliseconds.
    time: i64,
    producer: i64,
    count: usize,
    is_transactional: bool,
    is_control: bool,
}

impl Header {
    /// Parses a batch header. Returns `None` if no complete batch is left.
    fn read(bytes: &Bytes) -> Result<Option<Self>> {
        if bytes.len() < LENGTH_END {
            return Ok(None);
        }
        let mut at = bytes.clone();
        let base = at.get_i64();
        let length = usize::try_from(at.get_i32())?;
        let length = LENGTH_END + length;
        if bytes.len() < length.max(HEADER) {
            return Ok(None);
        }
        let _epoch = at.get_i32();
        let magic = at.get_i8();
        if magic != MAGIC {
            bail!("offset {base} is in format {magic}, of before Kafka 0.11; this program reads 2");
        }
        ensure!(length >= HEADER, "the batch at offset {base} is too short");
        let _checksum = at.get_u32();
        let attributes = at.get_i16();
        let last = at.get_i32();
        ensure!(last >= 0 && base >= 0, "the batch at offset {base} ends before it begins");
        let is_followed = base.checked_add(i64::from(last)).is_some_and(|last| last < i64::MAX);
        ensure!(is_followed, "nothing can follow the batch at offset {base}");
        let time = at.get_i64();
        at.advance(8); // Maximum timestamp.
        let producer = at.get_i64();
        at.advance(6); // Producer epoch and base sequence.
        let count = usize::try_from(at.get_i32())?;
        Ok(Some(Self {
            base,
            length,
            last,
            time,
            producer,
            count,
            is_transactional: attributes & (1 << 4) != 0,
            is_control: attributes & (1 << 5) != 0,
        }))
    }

    fn records(&self, mut batch: Bytes) -> Result<Vec<Record>> {
        let open = |packed: &mut Bytes, compression| {
            let open = decompress(packed, compression)?;
            ensure!(self.count <= open.len() / RECORD_MIN, "it cannot hold {} records", self.count);
            vet::vet(self, &open)?;
            Ok(open)
        };
        let set = RecordBatchDecoder::decode_with_custom_compression(&mut batch, Some(open))?;
        Ok(set.records)
    }
}

/// Converts a record to a message.
pub(super) fn message(topic_partition: &TopicPartition, record: Record) -> Message {
    let TopicPartition { topic, partition } = topic_partition;
    let offset = record.offset;
    let mut metadata = Map::new();
    metadata.insert("topic".to_owned(), Value::from(&**topic));
    metadata.insert("partition".to_owned(), Value::from(*partition));
    metadata.insert("offset".to_owned(), Value::from(offset));
    metadata.insert("timestamp_ms".to_owned(), Value::from(record.timestamp));
    let of = match record.timestamp_type {
        TimestampType::Creation => "create",
        TimestampType::LogAppend => "append",
    };
    metadata.insert("timestamp_type".to_owned(), Value::from(of));
    let headers: Vec<(String, String)> = record
        .headers
        .into_iter()
        .map(|(name, value)| (name.to_string(), text(value.unwrap_or_default())))
        .collect();
    let mut attributes: Map =
        headers.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
    if let Some(key) = record.key {
        attributes.insert("key".to_owned(), Value::from(text(key)));
    }
    if record.value.is_none() {
        // A tombstone: deletes its key in a compacted topic.
        metadata.insert("tombstone".to_owned(), Value::from(true));
    }
    Message {
        id: format!("{topic}:{partition}:{offset}"),
        body: record.value.unwrap_or_default(),
        headers,
        attributes,
        metadata,
        ack_id: None,
    }
}

/// Returns bytes as text if they are UTF-8, else as Base64.
fn text(bytes: Bytes) -> String {
    String::from_utf8(bytes.into()).unwrap_or_else(|error| STANDARD.encode(error.as_bytes()))
}

#[cfg(test)]
mod tests;
