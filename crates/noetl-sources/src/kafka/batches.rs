//! Batches of records, as a broker answers with them, and as messages.
//!
//! What a transaction wrote that was given up, and the marks that say so, are left out: they are for nobody.

mod vet;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf as _, Bytes};
use kafka_protocol::messages::fetch_response::AbortedTransaction;
use kafka_protocol::records::{Record, RecordBatchDecoder, TimestampType};
use noetl_model::{Map, Value};

use super::cluster::Place;
use super::unpack::unpack;
use crate::source::Message;

/// How long the fixed part of a batch is, and the part of it that says how long the rest is.
const HEADER: usize = 61;
const LENGTH_END: usize = 12;

/// The only format that is read: since Kafka 0.11.
const MAGIC: i8 = 2;

/// The fewest bytes a record takes.
const RECORD_MIN: usize = 7;

/// What an answer holds of a partition.
#[derive(Debug, Default)]
pub(super) struct Batches {
    /// Records that are for somebody, with their offsets.
    pub(super) records: Vec<Record>,
    /// What is to be asked for next; none when the answer held nothing whole.
    pub(super) next: Option<i64>,
}

/// Reads all whole batches. The last one may be cut off, and comes whole when it is asked for.
pub(super) fn read(bytes: &Bytes, aborted: &[AbortedTransaction]) -> Result<Batches> {
    let mut begun: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for transaction in aborted {
        begun.entry(transaction.first_offset).or_default().push(transaction.producer_id.0);
    }
    let mut given_up = BTreeSet::new();
    let mut found = Batches::default();
    let mut rest = bytes.clone();
    while let Some(header) = Header::read(&rest)? {
        let batch = rest.split_to(header.length);
        let last = header.base + i64::from(header.last);
        let is_after = found.next.is_none_or(|next| header.base >= next);
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
            found.records.extend(header.records(batch).context(whole)?);
        }
        found.next = Some(last + 1);
    }
    Ok(found)
}

/// Whether a mark says that a transaction was given up: two numbers, the version and the kind of mark.
fn is_giving_up(mark: &Record) -> bool {
    let key = mark.key.as_deref().and_then(|key| key.get(2..4));
    key == Some(&[0, 0])
}

struct Header {
    base: i64,
    /// Bytes of all of it.
    length: usize,
    /// How far its last offset is from the first. The record itself may be gone.
    last: i32,
    /// When its first record was made.
    time: i64,
    producer: i64,
    count: usize,
    is_transactional: bool,
    is_control: bool,
}

impl Header {
    /// None when nothing whole is left.
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
        at.advance(8); // When its last record was made.
        let producer = at.get_i64();
        at.advance(6); // Of which life of the producer, and which of its batches.
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
            let open = unpack(packed, compression)?;
            ensure!(self.count <= open.len() / RECORD_MIN, "it cannot hold {} records", self.count);
            vet::vet(self, &open)?;
            Ok(open)
        };
        let set = RecordBatchDecoder::decode_with_custom_compression(&mut batch, Some(open))?;
        Ok(set.records)
    }
}

/// A record as a message.
pub(super) fn message(place: &Place, record: Record) -> Message {
    let Place { topic, partition } = place;
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
        // It says that what has its key is gone.
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

/// A text as it is; anything else as base64.
fn text(bytes: Bytes) -> String {
    String::from_utf8(bytes.into()).unwrap_or_else(|error| STANDARD.encode(error.as_bytes()))
}

#[cfg(test)]
mod tests;
