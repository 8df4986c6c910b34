//! Event logs, each in the shard of its execution.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::{join_all, select_all};
use noetl_model::row::EventRow;
use noetl_model::{Event, EventId, ExecutionId, Seq, TimerId};

use super::{NamedStore, Sharded};
use crate::{Append, Committed, EventLog, LockedLog, ReadBound, StoreError};

/// Part of a batch for one shard.
#[derive(Default)]
struct Portion {
    /// Indexes of the items in the batch.
    places: Vec<usize>,
    items: Vec<Append>,
}

/// Outcomes of a batch: one per item of the shards that succeeded, and the errors of the others.
struct Answers {
    outcomes: Vec<Option<Committed>>,
    failed: Vec<StoreError>,
}

impl Answers {
    fn is_kept(&self, place: usize) -> bool {
        self.outcomes[place] == Some(Committed::Appended)
    }

    /// Combines the outcomes into one result. If part of the batch is durable in another shard, the
    /// error is [`StoreError::Unknown`], so that no caller concludes that nothing was written.
    fn into_result(self) -> Result<Vec<Committed>, StoreError> {
        let is_open = |error: &StoreError| matches!(error.failure(), StoreError::Unknown(_));
        let is_kept = self.outcomes.contains(&Some(Committed::Appended));
        let is_unknown = is_kept || self.failed.iter().any(is_open);
        match self.failed.into_iter().next() {
            None => Ok(self.outcomes.into_iter().flatten().collect()),
            Some(StoreError::Shard { name, source }) if is_unknown && !is_open(&source) => {
                Err(StoreError::Unknown(source).on_shard(&name))
            }
            Some(error) => Err(error),
        }
    }
}

impl Sharded {
    /// Commits a batch, each item in its shard, all shards concurrently.
    async fn commit_apart(&self, batch: Vec<Append>) -> Answers {
        let mut outcomes = vec![None; batch.len()];
        let mut portions: Vec<Portion> = Vec::new();
        portions.resize_with(self.shards.len(), Portion::default);
        for (place, append) in batch.into_iter().enumerate() {
            let portion = &mut portions[self.number_of(append.row.id)];
            portion.places.push(place);
            portion.items.push(append);
        }
        let mut places = Vec::new();
        let mut commits = Vec::new();
        for (shard, portion) in self.shards.iter().zip(portions) {
            if !portion.items.is_empty() {
                places.push((shard, portion.places));
                commits.push(shard.store.commit(portion.items));
            }
        }
        let mut failed = Vec::new();
        for ((shard, places), answer) in places.into_iter().zip(join_all(commits).await) {
            match shard.named(answer) {
                Ok(answers) => {
                    for (place, answer) in places.into_iter().zip(answers) {
                        outcomes[place] = Some(answer);
                    }
                }
                Err(error) => failed.push(error),
            }
        }
        Answers { outcomes, failed }
    }

    /// Returns `true` if a log without events after `after` in this shard may be in the cluster
    /// store, like the logs of subscriptions. A log that the shard contains is not looked up in
    /// another store.
    async fn is_elsewhere(
        &self,
        shard: &NamedStore,
        log: ExecutionId,
        after: Seq,
    ) -> Result<bool, StoreError> {
        if Arc::ptr_eq(&shard.store, &self.cluster.store) {
            return Ok(false);
        }
        if after == Seq::START {
            return Ok(true);
        }
        Ok(shard.named(shard.store.read(log, Seq::START, 1).await)?.is_empty())
    }

    /// Deletes the timers that committed appends handled from the shards of their senders. A timer
    /// that cannot be deleted is delivered again, which its handler tolerates; so the commit
    /// stands.
    async fn remove_delivered(&self, delivered: &[(usize, Vec<TimerId>)]) {
        let removals = self.shards.iter().enumerate().map(|(number, shard)| async move {
            // The append's own shard deleted them in its transaction.
            let others = delivered.iter().filter(|(from, _)| *from != number);
            let ids: Vec<TimerId> = others.flat_map(|(_, ids)| ids).copied().collect();
            if ids.is_empty() {
                return;
            }
            if let Err(error) = shard.store.delete_timers(&ids).await {
                let name = &*shard.name;
                tracing::warn!(name, %error, "failed to delete delivered timers");
            }
        });
        join_all(removals).await;
    }
}

#[async_trait]
impl EventLog for Sharded {
    async fn commit(&self, batch: Vec<Append>) -> Result<Vec<Committed>, StoreError> {
        if let [only] = &*self.shards {
            return only.named(only.store.commit(batch).await);
        }
        // Check before any shard writes, so that a malformed item has no effect in another shard.
        for append in &batch {
            append.check()?;
        }
        let delivers = |(place, append): (usize, &Append)| {
            let from = self.number_of(append.row.id);
            (!append.delivered.is_empty()).then(|| (place, from, append.delivered.clone()))
        };
        let delivered: Vec<_> = batch.iter().enumerate().filter_map(delivers).collect();
        let answers = self.commit_apart(batch).await;
        let kept = delivered.into_iter().filter(|(place, ..)| answers.is_kept(*place));
        let kept: Vec<_> = kept.map(|(_, from, ids)| (from, ids)).collect();
        self.remove_delivered(&kept).await;
        answers.into_result()
    }

    fn is_shared(&self) -> bool {
        self.shards.iter().any(|shard| shard.store.is_shared())
    }

    async fn wait_for_released_work(&self) {
        select_all(self.shards.iter().map(|shard| shard.store.wait_for_released_work())).await;
    }

    async fn notify_released_work(&self) -> Result<(), StoreError> {
        let said = self
            .shards
            .iter()
            .map(async |shard| shard.named(shard.store.notify_released_work().await));
        join_all(said).await.into_iter().collect()
    }

    async fn hold(&self, execution: ExecutionId) -> Result<Box<dyn LockedLog + '_>, StoreError> {
        let number = self.number_of(execution);
        let shard = &self.shards[number];
        let held = shard.named(shard.store.hold(execution).await)?;
        Ok(Box::new(HeldThere { sharded: self, number, held }))
    }

    async fn read(
        &self,
        execution: ExecutionId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        let shard = self.of_execution(execution);
        let found = shard.named(shard.store.read(execution, after, limit).await)?;
        if !found.is_empty() || limit == 0 || !self.is_elsewhere(shard, execution, after).await? {
            return Ok(found);
        }
        self.cluster.named(self.cluster.store.read(execution, after, limit).await)
    }

    async fn read_rows(
        &self,
        execution: ExecutionId,
        after: Option<EventId>,
        until: ReadBound,
        limit: usize,
    ) -> Result<Vec<EventRow>, StoreError> {
        let shard = self.of_execution(execution);
        let found = shard.named(shard.store.read_rows(execution, after, until, limit).await)?;
        if !found.is_empty() || limit == 0 || !self.is_elsewhere(shard, execution, Seq(1)).await? {
            return Ok(found);
        }
        let cluster = &self.cluster;
        cluster.named(cluster.store.read_rows(execution, after, until, limit).await)
    }

    async fn least_id_since(
        &self,
        execution: ExecutionId,
        after: Seq,
    ) -> Result<Option<EventId>, StoreError> {
        let shard = self.of_execution(execution);
        let found = shard.named(shard.store.least_id_since(execution, after).await)?;
        if found.is_some() || !self.is_elsewhere(shard, execution, Seq(1)).await? {
            return Ok(found);
        }
        self.cluster.named(self.cluster.store.least_id_since(execution, after).await)
    }

    async fn find_event(
        &self,
        execution: ExecutionId,
        event: EventId,
    ) -> Result<Option<Seq>, StoreError> {
        let shard = self.of_execution(execution);
        let found = shard.named(shard.store.find_event(execution, event).await)?;
        if found.is_some() || !self.is_elsewhere(shard, execution, Seq(1)).await? {
            return Ok(found);
        }
        self.cluster.named(self.cluster.store.find_event(execution, event).await)
    }

    async fn find_events(
        &self,
        execution: ExecutionId,
        events: &[EventId],
    ) -> Result<HashSet<EventId>, StoreError> {
        let shard = self.of_execution(execution);
        let found = shard.named(shard.store.find_events(execution, events).await)?;
        if !found.is_empty() || !self.is_elsewhere(shard, execution, Seq(1)).await? {
            return Ok(found);
        }
        self.cluster.named(self.cluster.store.find_events(execution, events).await)
    }

    async fn newest_id(&self) -> Result<Option<EventId>, StoreError> {
        let mut newest = self.all(|store| store.newest_id()).await?;
        if self.has_cluster_apart() {
            newest.push(self.cluster.named(self.cluster.store.newest_id().await)?);
        }
        Ok(newest.into_iter().flatten().max())
    }
}

/// An execution that is locked in its shard.
struct HeldThere<'a> {
    sharded: &'a Sharded,
    number: usize,
    held: Box<dyn LockedLog + 'a>,
}

#[async_trait]
impl LockedLog for HeldThere<'_> {
    async fn read(&mut self, after: Seq, limit: usize) -> Result<Vec<Event>, StoreError> {
        let answer = self.held.read(after, limit).await;
        self.sharded.shards[self.number].named(answer)
    }

    async fn commit(self: Box<Self>, append: Append) -> Result<Committed, StoreError> {
        let Self { sharded, number, held } = *self;
        let delivered = append.delivered.clone();
        let committed = sharded.shards[number].named(held.commit(append).await)?;
        if committed == Committed::Appended {
            sharded.remove_delivered(&[(number, delivered)]).await;
        }
        Ok(committed)
    }
}
