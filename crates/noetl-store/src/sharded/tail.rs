//! Commit lanes of all shards, combined. A consumer that follows each database separately reads the
//! shards themselves.

use async_trait::async_trait;

use super::Sharded;
use crate::StoreError;
use crate::tail::{Lane, LogTail, TailRow};

/// Number of lane numbers reserved per shard; no database has as many lanes.
const LANES_EACH: u16 = 32;

#[async_trait]
impl LogTail for Sharded {
    async fn lanes(&self) -> Result<Vec<Lane>, StoreError> {
        let by_shard = self.all(|store| store.lanes()).await?;
        let mut lanes = Vec::new();
        for (shard, found) in (0..).zip(by_shard) {
            let outward = |lane: Lane| Lane { number: shard * LANES_EACH + lane.number, ..lane };
            lanes.extend(found.into_iter().map(outward));
        }
        Ok(lanes)
    }

    async fn tail(&self, lane: u16, after: i64, limit: usize) -> Result<Vec<TailRow>, StoreError> {
        match self.shards.get(usize::from(lane / LANES_EACH)) {
            Some(shard) => shard.named(shard.store.tail(lane % LANES_EACH, after, limit).await),
            None => Ok(Vec::new()),
        }
    }

    async fn tail_adopted(&self, after: i64, limit: usize) -> Result<Vec<TailRow>, StoreError> {
        let by_shard = self.all(|store| store.tail_adopted(after, limit)).await?;
        // If a shard may have more rows, the order beyond its last row is unknown.
        let full = by_shard.iter().filter(|rows| rows.len() >= limit);
        let end = full.filter_map(|rows| rows.last()).map(|row| row.position).min();
        let mut rows: Vec<TailRow> = by_shard.into_iter().flatten().collect();
        rows.retain(|row| end.is_none_or(|end| row.position <= end));
        rows.sort_by_key(|row| row.position);
        Ok(rows)
    }
}
