//! Source for Kafka topics.
//!
//! A cluster stores only a committed offset per group and partition, not the state of single
//! messages, so nacked messages wait in memory. The committed offset advances once all earlier
//! messages are acked. After a crash, the next runtime reads the unacked messages again.

mod batches;
mod cluster;
mod compression;
mod connection;
pub(crate) mod fuzzing;
mod offsets;
mod reader;
mod sasl;
mod scram;
mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use kafka_protocol::ResponseError;
use noetl_egress::EgressPolicy;
use noetl_model::Map;
use noetl_playbook::subscription::Subscription;
use tokio::sync::Mutex;
use tokio::time::Instant;

use self::cluster::{Cluster, OffsetEdge, TopicPartition};
use self::offsets::GroupOffsets;
use self::reader::PartitionReader;
use self::settings::KafkaSettings;
use crate::source::{Delivery, DeliveryAck, Message, Source, SourceError, SourceFactory};

/// Nominal ack deadline. This source enforces none.
const ACK_WAIT: Duration = Duration::from_secs(3600);

/// Opens sources of kind `kafka`.
#[derive(Debug, Clone, Default)]
pub struct Kafka {
    egress: EgressPolicy,
}

impl Kafka {
    /// Restricts token endpoints to those this egress policy allows.
    pub fn with_egress_policy(egress: EgressPolicy) -> Self {
        Self { egress }
    }
}

#[async_trait]
impl SourceFactory for Kafka {
    fn kind(&self) -> &'static str {
        "kafka"
    }

    async fn open(
        &self,
        subscription: &Subscription,
        settings: &Map,
    ) -> Result<Arc<dyn Source>, SourceError> {
        let settings = Arc::new(KafkaSettings::read(settings, &subscription.path, &self.egress)?);
        let cluster = Cluster::new(settings);
        let leaders = cluster.leaders().await?;
        // Commits and lookups must not wait for fetches, so they use separate connections.
        let group_offsets = Arc::new(GroupOffsets::new(cluster.with_own_connections()));
        let at = begin(&cluster, &group_offsets, &leaders).await?;
        let look = cluster.with_own_connections();
        let reader = PartitionReader::new(cluster, group_offsets.clone(), leaders, at);
        Ok(Arc::new(TopicSource { reader: Mutex::new(reader), group_offsets, look }))
    }
}

/// Returns the start offset of each partition: the committed one, or else the start or end of the
/// partition.
async fn begin(
    cluster: &Cluster,
    group_offsets: &GroupOffsets,
    leaders: &BTreeMap<TopicPartition, i32>,
) -> Result<BTreeMap<TopicPartition, i64>, SourceError> {
    let known = group_offsets.read(leaders.keys().cloned().collect()).await?;
    let mut at: BTreeMap<TopicPartition, i64> = known
        .iter()
        .filter_map(|(topic_partition, at)| Some((topic_partition.clone(), (*at)?)))
        .collect();
    // If any offset is committed, the other partitions were added later. They are read from the
    // start, because all of their messages are new.
    let is_new = cluster.settings.is_from_new && at.is_empty();
    let missing: BTreeMap<TopicPartition, i32> = leaders
        .iter()
        .filter(|(topic_partition, _)| !at.contains_key(topic_partition))
        .map(|(topic_partition, leader)| (topic_partition.clone(), *leader))
        .collect();
    if !missing.is_empty() {
        let end = if is_new { OffsetEdge::Next } else { OffsetEdge::First };
        at.extend(cluster.ends(&missing, end).await?);
    }
    group_offsets.begin(&at).await?;
    Ok(at)
}

fn wrong(message: impl Into<String>) -> SourceError {
    SourceError::Settings(message.into())
}

/// Classifies a broker's error as one that needs a configuration change or one that may resolve
/// itself.
fn refused(what: &str, error: ResponseError) -> SourceError {
    use ResponseError::{
        ClusterAuthorizationFailed, GroupAuthorizationFailed, InvalidGroupId,
        InvalidTopicException, SaslAuthenticationFailed, TopicAuthorizationFailed,
        UnknownTopicOrPartition, UnsupportedVersion,
    };
    match error {
        ClusterAuthorizationFailed
        | GroupAuthorizationFailed
        | InvalidGroupId
        | InvalidTopicException
        | SaslAuthenticationFailed
        | TopicAuthorizationFailed
        | UnsupportedVersion => wrong(format!("{what}: {error}")),
        UnknownTopicOrPartition => SourceError::Away(format!("{what}: it is not there ({error})")),
        _ => SourceError::Away(format!("{what}: {error}")),
    }
}

struct TopicSource {
    reader: Mutex<PartitionReader>,
    group_offsets: Arc<GroupOffsets>,
    look: Cluster,
}

impl TopicSource {
    fn delivery(&self, topic_partition: TopicPartition, offset: u64, message: Message) -> Delivery {
        let is_answered = AtomicBool::new(false);
        let handle = KafkaAck {
            topic_partition,
            offset,
            group_offsets: self.group_offsets.clone(),
            is_answered,
        };
        Delivery::new(message, handle)
    }
}

#[async_trait]
impl Source for TopicSource {
    async fn fetch(&self, most: usize, wait: Duration) -> Result<Vec<Delivery>, SourceError> {
        let mut reader = self.reader.lock().await;
        self.group_offsets.commit_pending().await?;
        let due = self.group_offsets.due(Instant::now(), most);
        if !due.is_empty() {
            let again = due.into_iter();
            return Ok(again
                .map(|(topic_partition, at, message)| self.delivery(topic_partition, at, message))
                .collect());
        }
        let fetched = reader.next(most.max(1), wait).await?;
        Ok(fetched
            .into_iter()
            .map(|(topic_partition, at, message)| self.delivery(topic_partition, at, message))
            .collect())
    }

    fn ack_wait(&self) -> Duration {
        ACK_WAIT
    }

    async fn backlog(&self) -> Result<Option<u64>, SourceError> {
        let leaders = self.look.leaders().await?;
        let ends = self.look.ends(&leaders, OffsetEdge::Next).await?;
        let passed = self.group_offsets.passed();
        let waiting = ends.iter().map(|(topic_partition, end)| {
            let passed = passed.get(topic_partition).copied().unwrap_or(0);
            u64::try_from(end - passed).unwrap_or(0)
        });
        Ok(Some(waiting.sum()))
    }

    async fn close(&self) {}
}

struct KafkaAck {
    topic_partition: TopicPartition,
    offset: u64,
    group_offsets: Arc<GroupOffsets>,
    is_answered: AtomicBool,
}

#[async_trait]
impl DeliveryAck for KafkaAck {
    async fn ack(&self) -> Result<(), SourceError> {
        self.is_answered.store(true, Ordering::Release);
        self.group_offsets.done(&self.topic_partition, self.offset).await
    }

    async fn nack(&self, after: Duration) -> Result<(), SourceError> {
        self.is_answered.store(true, Ordering::Release);
        self.group_offsets.schedule_redelivery(&self.topic_partition, self.offset, after);
        Ok(())
    }

    async fn term(&self) -> Result<(), SourceError> {
        self.ack().await
    }

    async fn extend(&self) -> Result<(), SourceError> {
        Ok(())
    }
}

impl Drop for KafkaAck {
    fn drop(&mut self) {
        if !self.is_answered.load(Ordering::Acquire) {
            self.group_offsets.schedule_redelivery(
                &self.topic_partition,
                self.offset,
                Duration::ZERO,
            );
        }
    }
}
