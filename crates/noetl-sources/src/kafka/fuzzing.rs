//! Parses fetched records in the way a source does, for fuzzing.

use bytes::Bytes;
use kafka_protocol::messages::ProducerId;
use kafka_protocol::messages::fetch_response::AbortedTransaction;

use super::batches;
use super::cluster::TopicPartition;

/// Returns the offsets of the visible records and the next offset to fetch, or `None` if parsing
/// fails. `given_up` lists the aborted transactions: producer ID and first offset.
pub fn read(bytes: &[u8], given_up: &[(i64, i64)]) -> Option<(Vec<i64>, Option<i64>)> {
    let aborted: Vec<AbortedTransaction> = given_up
        .iter()
        .map(|(producer, first)| {
            let aborted = AbortedTransaction::default().with_first_offset(*first);
            aborted.with_producer_id(ProducerId(*producer))
        })
        .collect();
    let parsed = batches::read(&Bytes::copy_from_slice(bytes), &aborted).ok()?;
    let topic_partition = TopicPartition { topic: "t".into(), partition: 0 };
    let offsets = parsed.records.iter().map(|record| record.offset).collect();
    for record in parsed.records {
        let _ = batches::message(&topic_partition, record);
    }
    Some((offsets, parsed.next))
}
