//! Records as producers write them; the tests of batches use them as well.

use bytes::Bytes;
use kafka_protocol::records::{Record, TimestampType};

pub(crate) fn record(offset: i64, value: impl AsRef<[u8]>) -> Record {
    Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: 0,
        producer_id: -1,
        producer_epoch: -1,
        timestamp_type: TimestampType::Creation,
        offset,
        sequence: -1,
        timestamp: 1_718_000_000_000,
        key: None,
        value: Some(Bytes::copy_from_slice(value.as_ref())),
        headers: Default::default(),
    }
}
