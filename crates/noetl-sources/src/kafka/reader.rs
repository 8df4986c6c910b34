//! Fetches partitions from their leaders, with one request in flight per broker.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::{BrokerId, FetchRequest, FetchResponse};
use tokio::time::Instant;

use super::batches;
use super::cluster::{Cluster, OffsetEdge, READ_COMMITTED, TopicPartition, by_topic, topic_name};
use super::connection::check;
use super::offsets::GroupOffsets;
use super::refused;
use crate::source::{Message, SourceError};

/// Maximum bytes per fetch from a broker, and per partition. A larger batch is returned alone.
const BYTES_WANTED: i32 = 8 << 20;
const PARTITION_BYTES_WANTED: i32 = 1 << 20;

/// Number of delivered messages not passed by the committed offset at which the source stops
/// fetching a partition.
const OPEN_MAX: usize = 10_000;

/// Interval of checks for new partitions.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Delay before retrying a partition whose leader changes, and the maximum number of retries.
const MOVE_PAUSE: Duration = Duration::from_millis(200);
const MOVES_MAX: u32 = 25;

/// A message with its partition and offset.
pub(super) type FetchedRecord = (TopicPartition, u64, Message);

/// Response of a broker, with the broker's ID.
type BrokerReply = (i32, Result<FetchResponse, SourceError>);

pub(super) struct PartitionReader {
    cluster: Arc<Cluster>,
    group_offsets: Arc<GroupOffsets>,
    leaders: BTreeMap<TopicPartition, i32>,
    /// Next offset to fetch of each partition.
    at: BTreeMap<TopicPartition, i64>,
    /// Fetches in flight, at most one per broker. They survive a cancelled call of `next`.
    in_flight: FuturesUnordered<BoxFuture<'static, BrokerReply>>,
    asked: BTreeSet<i32>,
    ready: VecDeque<FetchedRecord>,
    look_at: Instant,
    /// Consecutive responses in which a partition was not at its expected leader.
    moves: u32,
    /// Rotates the order of partitions, so that each is first at times.
    turn: usize,
}

impl PartitionReader {
    pub(super) fn new(
        cluster: Cluster,
        group_offsets: Arc<GroupOffsets>,
        leaders: BTreeMap<TopicPartition, i32>,
        at: BTreeMap<TopicPartition, i64>,
    ) -> Self {
        Self {
            cluster: Arc::new(cluster),
            group_offsets,
            leaders,
            at,
            in_flight: FuturesUnordered::new(),
            asked: BTreeSet::new(),
            ready: VecDeque::new(),
            look_at: Instant::now() + LOOK_EVERY,
            moves: 0,
            turn: 0,
        }
    }

    /// Waits up to `wait` for messages and returns up to `most`, or none when the wait ends.
    pub(super) async fn next(
        &mut self,
        most: usize,
        wait: Duration,
    ) -> Result<Vec<FetchedRecord>, SourceError> {
        let until = Instant::now() + wait;
        while self.ready.is_empty() {
            if self.look_at <= Instant::now() {
                self.look().await?;
            }
            self.ask(until.saturating_duration_since(Instant::now()));
            let Ok(Some((broker, answer))) =
                tokio::time::timeout_at(until, self.in_flight.next()).await
            else {
                // No fetch is in flight while every partition is at its limit of unacked messages.
                tokio::time::sleep_until(until).await;
                break;
            };
            self.asked.remove(&broker);
            let is_moving = self.take(answer?).await?;
            if is_moving {
                tokio::time::sleep_until(until.min(Instant::now() + MOVE_PAUSE)).await;
            }
        }
        let count = self.ready.len().min(most);
        Ok(self.ready.drain(..count).collect())
    }

    /// Refreshes the leaders of partitions. Reads new partitions from their start.
    async fn look(&mut self) -> Result<(), SourceError> {
        let leaders = self.cluster.leaders().await?;
        let new: BTreeMap<TopicPartition, i32> = leaders
            .iter()
            .filter(|(topic_partition, _)| !self.at.contains_key(topic_partition))
            .map(|(topic_partition, leader)| (topic_partition.clone(), *leader))
            .collect();
        if !new.is_empty() {
            let ends = self.cluster.ends(&new, OffsetEdge::First).await?;
            self.group_offsets.begin(&ends).await?;
            self.at.extend(ends);
        }
        self.leaders = leaders;
        self.look_at = Instant::now() + LOOK_EVERY;
        Ok(())
    }

    /// Sends a fetch to every broker without one in flight.
    fn ask(&mut self, wait: Duration) {
        let mut wanted: BTreeMap<i32, Vec<(TopicPartition, i64)>> = BTreeMap::new();
        for (topic_partition, at) in &self.at {
            if let Some(leader) =
                self.leaders.get(topic_partition).filter(|id| !self.asked.contains(id))
                && self.group_offsets.open(topic_partition) < OPEN_MAX
            {
                wanted.entry(*leader).or_default().push((topic_partition.clone(), *at));
            }
        }
        for (broker, mut topic_partitions) in wanted {
            self.turn = self.turn.wrapping_add(1);
            let first = self.turn % topic_partitions.len();
            topic_partitions.rotate_left(first);
            let request = request(topic_partitions, wait);
            let cluster = self.cluster.clone();
            self.asked.insert(broker);
            self.in_flight.push(Box::pin(async move {
                let answer = async {
                    let broker = cluster.broker(broker).await?;
                    broker.ask(&request, 11, wait).await
                };
                (broker, answer.await)
            }));
        }
    }

    /// Processes a fetch response. Returns `true` if the leader of a partition is changing.
    async fn take(&mut self, answer: FetchResponse) -> Result<bool, SourceError> {
        check("messages are not read", answer.error_code)?;
        let mut moving = None;
        for topic in answer.responses {
            for partition in topic.partitions {
                let topic_partition = TopicPartition {
                    topic: topic.topic.as_str().into(),
                    partition: partition.partition_index,
                };
                match ResponseError::try_from_code(partition.error_code) {
                    None => self.take_partition(topic_partition, partition)?,
                    Some(ResponseError::OffsetOutOfRange) => {
                        return Err(self.lost(&topic_partition).await?);
                    }
                    Some(error) => {
                        let unread = refused(&format!("{topic_partition} is not read"), error);
                        if !is_of_moving(error) {
                            return Err(unread);
                        }
                        moving = Some(unread);
                    }
                }
            }
        }
        let Some(unread) = moving else {
            self.moves = 0;
            return Ok(false);
        };
        self.moves += 1;
        if self.moves > MOVES_MAX {
            return Err(unread);
        }
        self.look_at = Instant::now();
        Ok(true)
    }

    fn take_partition(
        &mut self,
        topic_partition: TopicPartition,
        data: PartitionData,
    ) -> Result<(), SourceError> {
        let Some(at) = self.at.get_mut(&topic_partition) else { return Ok(()) };
        let bytes = data.records.unwrap_or_default();
        let aborted = data.aborted_transactions.unwrap_or_default();
        let read = batches::read(&bytes, &aborted);
        let read =
            read.map_err(|error| SourceError::Away(format!("{topic_partition}: {error:#}")))?;
        for record in read.records {
            // A broker returns whole batches, including records that were already read.
            if record.offset < *at {
                continue;
            }
            let Ok(offset) = u64::try_from(record.offset) else { continue };
            let message = batches::message(&topic_partition, record);
            self.group_offsets.hand_out(&topic_partition, offset, message.clone());
            self.ready.push_back((topic_partition.clone(), offset, message));
        }
        if let Some(next) = read.next {
            *at = (*at).max(next);
            self.group_offsets.advance_scanned(&topic_partition, *at);
        }
        Ok(())
    }

    /// Resets the offset of a partition to its start, and returns an error that describes the gap.
    async fn lost(&mut self, topic_partition: &TopicPartition) -> Result<SourceError, SourceError> {
        let leader = self.leaders.get(topic_partition).copied().unwrap_or(-1);
        let only = BTreeMap::from([(topic_partition.clone(), leader)]);
        let ends = self.cluster.ends(&only, OffsetEdge::First).await?;
        let first = ends.get(topic_partition).copied().unwrap_or(0);
        let at = self.at.get(topic_partition).copied().unwrap_or(0);
        self.group_offsets.set(topic_partition, first).await?;
        let what = if at < first {
            format!("its messages from {at} on were deleted before they were read")
        } else {
            format!("it was read up to {at} and ends before that: it was recreated or truncated")
        };
        Ok(SourceError::Away(format!("{topic_partition}: {what}; reading continues at {first}")))
    }
}

fn request(topic_partitions: Vec<(TopicPartition, i64)>, wait: Duration) -> FetchRequest {
    let topics = by_topic(topic_partitions).into_iter().map(|(topic, partitions)| {
        let partitions = partitions.into_iter().map(|(partition, at)| {
            FetchPartition::default()
                .with_partition(partition)
                .with_fetch_offset(at)
                .with_partition_max_bytes(PARTITION_BYTES_WANTED)
        });
        FetchTopic::default().with_topic(topic_name(&topic)).with_partitions(partitions.collect())
    });
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(i32::try_from(wait.as_millis()).unwrap_or(i32::MAX))
        .with_min_bytes(1)
        .with_max_bytes(BYTES_WANTED)
        .with_isolation_level(READ_COMMITTED)
        .with_session_epoch(-1)
        .with_topics(topics.collect())
}

/// Returns `true` if an error means that the partition's leader has changed or is being elected.
fn is_of_moving(error: ResponseError) -> bool {
    use ResponseError::{
        FencedLeaderEpoch, KafkaStorageError, LeaderNotAvailable, NotLeaderOrFollower,
        OffsetNotAvailable, ReplicaNotAvailable, UnknownLeaderEpoch, UnknownTopicOrPartition,
    };
    matches!(
        error,
        FencedLeaderEpoch
            | KafkaStorageError
            | LeaderNotAvailable
            | NotLeaderOrFollower
            | OffsetNotAvailable
            | ReplicaNotAvailable
            | UnknownLeaderEpoch
            | UnknownTopicOrPartition
    )
}
