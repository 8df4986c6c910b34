//! Batches as brokers write them.

use bytes::{BufMut as _, BytesMut};
use kafka_protocol::messages::ProducerId;
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{Compression, RecordBatchEncoder, RecordEncodeOptions};

use self::record::record;
use super::*;

#[path = "../../../tests/it/kafka/record.rs"]
mod record;

fn of_transaction(offset: i64, producer: i64, value: &str) -> Record {
    Record {
        transactional: true,
        producer_id: producer,
        producer_epoch: 0,
        sequence: 0,
        ..record(offset, value)
    }
}

/// Returns the control record that commits or aborts a transaction.
fn mark(offset: i64, producer: i64, kind: u8) -> Record {
    let key = Bytes::from(vec![0, 0, 0, kind]);
    Record { control: true, key: Some(key), ..of_transaction(offset, producer, "\0\0\0\0\0\0") }
}

fn batch(records: &[Record]) -> Bytes {
    let mut bytes = BytesMut::new();
    let options = RecordEncodeOptions { version: 2, compression: Compression::None };
    RecordBatchEncoder::encode(&mut bytes, records, &options).unwrap();
    bytes.freeze()
}

fn values(batches: &Batches) -> Vec<&str> {
    let values = batches.records.iter().map(|record| record.value.as_deref().unwrap());
    values.map(|value| std::str::from_utf8(value).unwrap()).collect()
}

#[test]
fn truncated_batches_are_left_for_the_next_fetch() {
    let (first, second) = (batch(&[record(5, "a")]), batch(&[record(6, "b")]));
    let whole = [first.clone(), second].concat();
    for length in 0..=whole.len() {
        let batches = read(&Bytes::copy_from_slice(&whole[..length]), &[]).unwrap();
        let (count, next) = match length {
            _ if length == whole.len() => (2, Some(7)),
            _ if length >= first.len() => (1, Some(6)),
            _ => (0, None),
        };
        assert_eq!((batches.records.len(), batches.next), (count, next), "{length} bytes");
    }
}

#[test]
fn compacted_records_are_skipped() {
    let mut bytes = BytesMut::from(&batch(&[record(5, "a")])[..]);
    // Its last offset was 9 before; the checksum is of what follows it.
    bytes[23..27].copy_from_slice(&4_i32.to_be_bytes());
    let sum = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&sum.to_be_bytes());
    let batches = read(&bytes.freeze(), &[]).unwrap();
    assert_eq!((values(&batches), batches.next), (vec!["a"], Some(10)));
}

#[test]
fn records_of_aborted_transactions_are_skipped() {
    let bytes = [
        batch(&[record(0, "alone")]),
        batch(&[of_transaction(1, 7, "given up")]),
        batch(&[of_transaction(2, 8, "kept")]),
        batch(&[mark(3, 7, 0)]),
        batch(&[of_transaction(4, 7, "the next one")]),
        batch(&[mark(5, 8, 1)]),
        batch(&[mark(6, 7, 1)]),
    ]
    .concat();
    let aborted =
        AbortedTransaction::default().with_producer_id(ProducerId(7)).with_first_offset(1);
    let batches = read(&bytes.clone().into(), &[aborted]).unwrap();
    assert_eq!(values(&batches), ["alone", "kept", "the next one"]);
    assert_eq!(batches.next, Some(7), "marks are passed as well");
}

#[test]
fn a_corrupt_batch_is_reported_with_its_position() {
    let good = batch(&[record(5, "abc")]);
    let broken = |change: &dyn Fn(&mut BytesMut)| {
        let mut bytes = BytesMut::from(&good[..]);
        change(&mut bytes);
        format!("{:#}", read(&bytes.freeze(), &[]).unwrap_err())
    };
    let torn = broken(&|bytes| bytes[70] ^= 1);
    assert!(torn.contains("offset 5") && torn.contains("check"), "{torn}");
    let old = broken(&|bytes| bytes[16] = 1);
    assert!(old.contains("offset 5 is in format 1"), "{old}");
    let boasting = broken(&|bytes| {
        bytes[57..61].copy_from_slice(&i32::MAX.to_be_bytes());
        let sum = crc32c::crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&sum.to_be_bytes());
    });
    assert!(boasting.contains("cannot hold"), "{boasting}");
    let mut endless = BytesMut::from(&good[..]);
    endless[8..12].copy_from_slice(&(-1_i32).to_be_bytes());
    assert!(read(&endless.freeze(), &[]).is_err());
    let mut rest = BytesMut::from(&good[..]);
    rest.put_slice(b"a few bytes");
    assert_eq!(read(&rest.freeze(), &[]).unwrap().next, Some(6));
}

/// Puts the length and the checksum of a batch right.
fn sealed(mut bytes: BytesMut) -> Bytes {
    let length = i32::try_from(bytes.len() - LENGTH_END).unwrap();
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    let sum = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&sum.to_be_bytes());
    bytes.freeze()
}

#[test]
fn declared_lengths_are_checked_against_the_data() {
    let good = batch(&[record(5, "abc")]);
    let refused = |at: usize, with: &[u8]| {
        let mut bytes = BytesMut::from(&good[..at]);
        bytes.put_slice(with);
        if bytes.len() < good.len() {
            let same = bytes.len();
            bytes.put_slice(&good[same..]);
        } else {
            // The record is longer by what was put in the place of its last byte.
            bytes[61] += 2 * u8::try_from(with.len() - 1).unwrap();
        }
        format!("{:#}", read(&sealed(bytes), &[]).unwrap_err())
    };
    // A decoder would allocate memory for them before it reads the first.
    let boasting = refused(good.len() - 1, &[0xfe, 0xff, 0xff, 0xff, 0x0f]);
    assert!(boasting.contains("a record cannot hold 2147483647 headers"), "{boasting}");
    let outside = refused(64, &[2]);
    assert!(outside.contains("a record lies outside its batch"), "{outside}");
    let late = refused(0, &i64::MAX.to_be_bytes());
    assert!(late.contains("nothing can follow the batch at offset"), "{late}");
    let mut timeless = BytesMut::from(&good[..]);
    timeless[27..35].copy_from_slice(&i64::MIN.to_be_bytes());
    timeless[63] = 1;
    let timeless = format!("{:#}", read(&sealed(timeless), &[]).unwrap_err());
    assert!(timeless.contains("a record is of no time"), "{timeless}");
    let back = [batch(&[record(5, "a")]), batch(&[record(4, "b")])].concat();
    let back = format!("{:#}", read(&back.into(), &[]).unwrap_err());
    assert!(back.contains("the batch at offset 4 comes after a later one"), "{back}");
}

#[test]
fn a_record_becomes_a_message() {
    let topic_partition = TopicPartition { topic: "orders".into(), partition: 3 };
    let mut of = record(12, "body");
    of.key = Some(Bytes::from_static(b"k"));
    of.headers.insert(StrBytes::from_static_str("x-a"), Some(Bytes::from_static(b"1")));
    of.headers.insert(StrBytes::from_static_str("raw"), Some(Bytes::from_static(&[0xff])));
    let converted = message(&topic_partition, of);
    assert_eq!((converted.id.as_str(), &converted.body[..]), ("orders:3:12", &b"body"[..]));
    assert_eq!(converted.attributes["key"], "k");
    let headers = [("x-a".to_owned(), "1".to_owned()), ("raw".to_owned(), "/w==".to_owned())];
    assert_eq!(converted.headers, headers);
    assert_eq!(
        (&converted.metadata["partition"], &converted.metadata["offset"]),
        (&3.into(), &12.into())
    );
    assert_eq!(converted.metadata.get("tombstone"), None);
    let gone = message(&topic_partition, Record { value: None, ..record(13, "") });
    assert!(gone.body.is_empty() && gone.metadata["tombstone"] == true);
}
