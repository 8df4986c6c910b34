//! Offsets of a group: acked messages and the committed offset of each partition.
//!
//! The group has no members. Only one runtime at a time runs a subscription, so no partition
//! assignment is needed. The coordinator rejects commits without a member as soon as another
//! consumer joins the group, because then both would read the same messages.

use std::collections::BTreeMap;
use std::sync::{Mutex as Shared, MutexGuard, PoisonError};
use std::time::Duration;

use kafka_protocol::ResponseError::{
    self, CoordinatorNotAvailable, FencedInstanceId, IllegalGeneration, NotCoordinator,
    RebalanceInProgress, UnknownMemberId,
};
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::{GroupId, OffsetCommitRequest, OffsetFetchRequest};
use kafka_protocol::protocol::StrBytes;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::cluster::{Cluster, TopicPartition, by_topic, topic_name};
use super::connection::check;
use super::{refused, wrong};
use crate::ack_tracker::AckTracker;
use crate::source::{Message, SourceError};

/// Interval of repeated commits of unchanged offsets. By default a cluster deletes the offsets of
/// inactive groups after a week, and it may be configured to delete them sooner.
const REMIND_EVERY: Duration = Duration::from_secs(3600);

/// Maximum number of attempts to commit when the connection to the coordinator is lost.
const TRIES: usize = 2;

pub(super) struct GroupOffsets {
    cluster: Cluster,
    partitions: Shared<BTreeMap<TopicPartition, PartitionProgress>>,
    /// Serializes commits and stores the time of the last one. A waiting caller often finds that an
    /// earlier commit included its offset.
    last_commit: Mutex<Instant>,
}

struct PartitionProgress {
    ledger: AckTracker<(), Message>,
    /// Offset before which every message is acked.
    passed: i64,
    /// Committed offset, as far as known.
    committed: i64,
    /// Whether the offset was reset, so that later acks no longer advance it.
    is_set: bool,
}

impl GroupOffsets {
    pub(super) fn new(cluster: Cluster) -> Self {
        Self { cluster, partitions: Shared::default(), last_commit: Mutex::new(Instant::now()) }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TopicPartition, PartitionProgress>> {
        self.partitions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn group(&self) -> GroupId {
        GroupId(StrBytes::from_string(self.cluster.settings.group.clone()))
    }

    /// Returns the committed offset of each partition, or `None` for those without one.
    pub(super) async fn read(
        &self,
        topic_partitions: Vec<TopicPartition>,
    ) -> Result<BTreeMap<TopicPartition, Option<i64>>, SourceError> {
        let topics = by_topic(
            topic_partitions.into_iter().map(|topic_partition| (topic_partition, ())).collect(),
        );
        let topics = topics.into_iter().map(|(topic, partitions)| {
            let partitions = partitions.into_iter().map(|(partition, ())| partition);
            OffsetFetchRequestTopic::default()
                .with_name(topic_name(&topic))
                .with_partition_indexes(partitions.collect())
        });
        let request = OffsetFetchRequest::default()
            .with_group_id(self.group())
            .with_topics(Some(topics.collect()));
        let coordinator = self.cluster.coordinator().await?;
        let answer = coordinator.ask(&request, 7, Duration::ZERO).await?;
        check("committed offsets of the group", answer.error_code)?;
        let mut offsets = BTreeMap::new();
        for topic in answer.topics {
            for partition in topic.partitions {
                let topic_partition = TopicPartition {
                    topic: topic.name.as_str().into(),
                    partition: partition.partition_index,
                };
                check(&format!("committed offset of {topic_partition}"), partition.error_code)?;
                let offset = partition.committed_offset;
                offsets.insert(topic_partition, (offset >= 0).then_some(offset));
            }
        }
        Ok(offsets)
    }

    /// Starts tracking these offsets and commits them. The commit stores them before anything is
    /// read and detects a group that has members.
    pub(super) async fn begin(
        &self,
        topic_partitions: &BTreeMap<TopicPartition, i64>,
    ) -> Result<(), SourceError> {
        self.commit(
            topic_partitions
                .iter()
                .map(|(topic_partition, at)| (topic_partition.clone(), *at))
                .collect(),
        )
        .await?;
        let mut partitions = self.lock();
        for (topic_partition, at) in topic_partitions {
            let new = PartitionProgress {
                ledger: AckTracker::default(),
                passed: *at,
                committed: *at,
                is_set: false,
            };
            partitions.entry(topic_partition.clone()).or_insert(new);
        }
        Ok(())
    }

    pub(super) fn hand_out(&self, topic_partition: &TopicPartition, offset: u64, message: Message) {
        if let Some(progress) = self.lock().get(topic_partition) {
            progress.ledger.begin(offset, (), message);
        }
    }

    /// Records that everything before `next` was read, so that the offset also advances past
    /// skipped records.
    pub(super) fn advance_scanned(&self, topic_partition: &TopicPartition, next: i64) {
        if let Some(progress) = self.lock().get_mut(topic_partition)
            && progress.ledger.len() == 0
        {
            progress.passed = progress.passed.max(next);
        }
    }

    /// Returns the number of a partition's messages that the offset has not advanced past.
    pub(super) fn open(&self, topic_partition: &TopicPartition) -> usize {
        self.lock().get(topic_partition).map_or(0, |progress| progress.ledger.len())
    }

    /// Returns the offsets before which every message is acked.
    pub(super) fn passed(&self) -> BTreeMap<TopicPartition, i64> {
        self.lock()
            .iter()
            .map(|(topic_partition, progress)| (topic_partition.clone(), progress.passed))
            .collect()
    }

    pub(super) fn due(&self, now: Instant, most: usize) -> Vec<(TopicPartition, u64, Message)> {
        let mut due = Vec::new();
        for (topic_partition, progress) in &*self.lock() {
            let messages = progress.ledger.due(now, most - due.len());
            due.extend(
                messages
                    .into_iter()
                    .map(|(offset, message)| (topic_partition.clone(), offset, message)),
            );
        }
        due
    }

    pub(super) fn schedule_redelivery(
        &self,
        topic_partition: &TopicPartition,
        offset: u64,
        after: Duration,
    ) {
        if let Some(progress) = self.lock().get(topic_partition) {
            progress.ledger.schedule_redelivery(offset, after);
        }
    }

    /// Records that a message is acked, and commits the offset if that advances it.
    pub(super) async fn done(
        &self,
        topic_partition: &TopicPartition,
        offset: u64,
    ) -> Result<(), SourceError> {
        let passed = {
            let mut partitions = self.lock();
            let Some(progress) = partitions.get_mut(topic_partition) else { return Ok(()) };
            let Some((last, ())) = progress.ledger.done(offset) else { return Ok(()) };
            progress.passed = progress.passed.max(i64::try_from(last).unwrap_or(i64::MAX - 1) + 1);
            progress.passed
        };
        let mut last = self.last_commit.lock().await;
        let is_committed = {
            let partitions = self.lock();
            let progress = partitions.get(topic_partition);
            progress.is_none_or(|progress| progress.is_set || progress.committed >= passed)
        };
        if is_committed { Ok(()) } else { self.commit_advanced(&mut last).await }
    }

    /// Commits offsets that are not committed, and repeats all commits every [`REMIND_EVERY`].
    pub(super) async fn commit_pending(&self) -> Result<(), SourceError> {
        let mut last = self.last_commit.lock().await;
        if last.elapsed() >= REMIND_EVERY {
            for progress in self.lock().values_mut() {
                progress.committed = -1;
            }
        }
        self.commit_advanced(&mut last).await
    }

    async fn commit_advanced(&self, last: &mut Instant) -> Result<(), SourceError> {
        let news: Vec<(TopicPartition, i64)> = {
            let partitions = self.lock();
            let uncommitted = partitions
                .iter()
                .filter(|(_, progress)| !progress.is_set && progress.committed < progress.passed);
            uncommitted
                .map(|(topic_partition, progress)| (topic_partition.clone(), progress.passed))
                .collect()
        };
        if news.is_empty() {
            return Ok(());
        }
        self.commit(news.clone()).await?;
        *last = Instant::now();
        let mut partitions = self.lock();
        for (topic_partition, passed) in news {
            if let Some(progress) = partitions.get_mut(&topic_partition) {
                progress.committed = progress.committed.max(passed);
            }
        }
        Ok(())
    }

    /// Resets the offset of a partition. Later acks no longer change it.
    pub(super) async fn set(
        &self,
        topic_partition: &TopicPartition,
        at: i64,
    ) -> Result<(), SourceError> {
        let _last = self.last_commit.lock().await;
        self.commit(vec![(topic_partition.clone(), at)]).await?;
        if let Some(progress) = self.lock().get_mut(topic_partition) {
            progress.is_set = true;
        }
        Ok(())
    }

    async fn commit(
        &self,
        topic_partitions: Vec<(TopicPartition, i64)>,
    ) -> Result<(), SourceError> {
        let topics = by_topic(topic_partitions).into_iter().map(|(topic, partitions)| {
            let partitions = partitions.into_iter().map(|(partition, at)| {
                OffsetCommitRequestPartition::default()
                    .with_partition_index(partition)
                    .with_committed_offset(at)
                    .with_committed_leader_epoch(-1)
                    .with_committed_metadata(Some(StrBytes::from_static_str("")))
            });
            OffsetCommitRequestTopic::default()
                .with_name(topic_name(&topic))
                .with_partitions(partitions.collect())
        });
        let request = OffsetCommitRequest::default()
            .with_group_id(self.group())
            .with_generation_id_or_member_epoch(-1)
            .with_topics(topics.collect());
        let mut tries = 0;
        let answer = loop {
            tries += 1;
            let coordinator = self.cluster.coordinator().await?;
            match coordinator.ask(&request, 8, Duration::ZERO).await {
                Err(SourceError::Away(_)) if tries < TRIES && coordinator.is_over() => {}
                answer => break answer?,
            }
        };
        for topic in answer.topics {
            for partition in topic.partitions {
                if let Some(error) = ResponseError::try_from_code(partition.error_code) {
                    if matches!(error, NotCoordinator | CoordinatorNotAvailable) {
                        self.cluster.forget_coordinator().await;
                    }
                    return Err(self.unheard(error));
                }
            }
        }
        Ok(())
    }

    fn unheard(&self, error: ResponseError) -> SourceError {
        let group = &self.cluster.settings.group;
        match error {
            UnknownMemberId | IllegalGeneration | RebalanceInProgress | FencedInstanceId => {
                wrong(format!(
                    "the group '{group}' has members that are not ours ({error}); name another \
                     `group`, or end them"
                ))
            }
            _ => refused(&format!("failed to commit offsets of group '{group}'"), error),
        }
    }
}
