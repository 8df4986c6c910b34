//! Brokers of a cluster, and their metadata about topics and groups.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex as Shared, PoisonError};
use std::time::Duration;

use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::MetadataResponse;
use kafka_protocol::messages::{
    BrokerId, FindCoordinatorRequest, ListOffsetsRequest, MetadataRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use tokio::sync::Mutex;

use super::connection::{BrokerConnection, check};
use super::settings::{Address, KafkaSettings};
use super::{refused, wrong};
use crate::source::SourceError;

/// Isolation level that reads and counts only committed records.
pub(super) const READ_COMMITTED: i8 = 1;

/// Version of ListOffsets requests: the first with an isolation level, supported by every broker
/// since Kafka 0.11. Later versions add nothing of use here.
const ENDS_VERSION: i16 = 2;

/// A partition of a topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TopicPartition {
    pub(super) topic: Arc<str>,
    pub(super) partition: i32,
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.topic, self.partition)
    }
}

/// An edge of a partition's log: its first offset, or the next one to be written.
#[derive(Debug, Clone, Copy)]
pub(super) enum OffsetEdge {
    First,
    Next,
}

/// Returns a topic's name in the type that requests use.
pub(super) fn topic_name(topic: &str) -> TopicName {
    TopicName(StrBytes::from_string(topic.to_owned()))
}

/// Values per partition, grouped by topic as requests list them.
pub(super) type ByTopic<T> = Vec<(Arc<str>, Vec<(i32, T)>)>;

/// Groups partitions by topic, preserving their order.
pub(super) fn by_topic<T>(items: Vec<(TopicPartition, T)>) -> ByTopic<T> {
    let mut topics: ByTopic<T> = Vec::new();
    for (topic_partition, item) in items {
        match topics.iter_mut().find(|(topic, _)| *topic == topic_partition.topic) {
            Some((_, partitions)) => partitions.push((topic_partition.partition, item)),
            None => topics.push((topic_partition.topic, vec![(topic_partition.partition, item)])),
        }
    }
    topics
}

/// Connections to brokers, one per broker, opened on demand and replaced when lost.
pub(super) struct Cluster {
    pub(super) settings: Arc<KafkaSettings>,
    addresses: Shared<HashMap<i32, Address>>,
    connections: Mutex<HashMap<Address, BrokerConnection>>,
    coordinator: Mutex<Option<BrokerConnection>>,
}

impl Cluster {
    pub(super) fn new(settings: Arc<KafkaSettings>) -> Self {
        Self {
            settings,
            addresses: Shared::default(),
            connections: Mutex::default(),
            coordinator: Mutex::default(),
        }
    }

    /// Returns a handle to the same brokers with separate connections.
    pub(super) fn with_own_connections(&self) -> Self {
        let addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Self { addresses: Shared::new(addresses), ..Self::new(self.settings.clone()) }
    }

    async fn connection_to(&self, address: &Address) -> Result<BrokerConnection, SourceError> {
        let mut connections = self.connections.lock().await;
        if let Some(connection) =
            connections.get(address).filter(|connection| !connection.is_over())
        {
            return Ok(connection.clone());
        }
        let made = BrokerConnection::open(address, &self.settings).await?;
        connections.insert(address.clone(), made.clone());
        Ok(made)
    }

    /// Returns a connection to a broker.
    pub(super) async fn broker(&self, id: i32) -> Result<BrokerConnection, SourceError> {
        let address = {
            let addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
            addresses.get(&id).cloned()
        };
        let missing = || SourceError::Away(format!("the address of broker {id} is unknown"));
        self.connection_to(&address.ok_or_else(missing)?).await
    }

    /// Returns a connection to any reachable broker: first those in the document, then known ones.
    async fn anyone(&self) -> Result<BrokerConnection, SourceError> {
        let known: Vec<Address> = {
            let addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
            self.settings.brokers.iter().chain(addresses.values()).cloned().collect()
        };
        let mut error = None;
        for address in known {
            match self.connection_to(&address).await {
                Ok(connection) => return Ok(connection),
                Err(failure) => error = error.or(Some(failure)),
            }
        }
        Err(error.unwrap_or_else(|| wrong("a kafka source needs `brokers`")))
    }

    /// Returns the leaders of all partitions of the topics.
    pub(super) async fn leaders(&self) -> Result<BTreeMap<TopicPartition, i32>, SourceError> {
        let topics = self.settings.topics.iter();
        let topics =
            topics.map(|topic| MetadataRequestTopic::default().with_name(Some(topic_name(topic))));
        let broker = self.anyone().await?;
        // Prevents the creation of topics, if the broker is recent enough to support that.
        let is_told = broker.version::<MetadataRequest>(9)? >= 4;
        let request = MetadataRequest::default()
            .with_topics(Some(topics.collect()))
            .with_allow_auto_topic_creation(!is_told);
        let metadata = broker.ask(&request, 9, Duration::ZERO).await?;
        self.hear_of(&metadata);
        let mut leaders = BTreeMap::new();
        for topic in metadata.topics {
            let name = topic.name.as_ref().map_or("", |name| name.as_str()).to_owned();
            check(&format!("topic '{name}'"), topic.error_code)?;
            let name: Arc<str> = name.into();
            for partition in topic.partitions {
                let topic_partition =
                    TopicPartition { topic: name.clone(), partition: partition.partition_index };
                if partition.leader_id.0 < 0 {
                    return Err(SourceError::Away(format!("{topic_partition} has no leader")));
                }
                leaders.insert(topic_partition, partition.leader_id.0);
            }
        }
        if leaders.is_empty() {
            return Err(SourceError::Away("the topics have no partitions".to_owned()));
        }
        Ok(leaders)
    }

    fn hear_of(&self, metadata: &MetadataResponse) {
        let brokers = metadata.brokers.iter().filter_map(|broker| {
            let port = u16::try_from(broker.port).ok()?;
            Some((broker.node_id.0, Address { host: broker.host.to_string(), port }))
        });
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        *addresses = brokers.collect();
    }

    /// Returns a connection to the coordinator of the group, which stores its committed offsets.
    pub(super) async fn coordinator(&self) -> Result<BrokerConnection, SourceError> {
        let mut known = self.coordinator.lock().await;
        if let Some(connection) = known.as_ref().filter(|connection| !connection.is_over()) {
            return Ok(connection.clone());
        }
        let group = &self.settings.group;
        let request =
            FindCoordinatorRequest::default().with_key(StrBytes::from_string(group.clone()));
        let response = self.anyone().await?.ask(&request, 3, Duration::ZERO).await?;
        check(&format!("coordinator of group '{group}'"), response.error_code)?;
        let port = u16::try_from(response.port);
        let port = port.map_err(|_| SourceError::Away("the coordinator has no port".to_owned()))?;
        let address = Address { host: response.host.to_string(), port };
        let connection = self.connection_to(&address).await?;
        *known = Some(connection.clone());
        Ok(connection)
    }

    /// Discards the cached coordinator after the group moved to another broker.
    pub(super) async fn forget_coordinator(&self) {
        *self.coordinator.lock().await = None;
    }

    /// Returns an edge offset of each of these partitions.
    pub(super) async fn ends(
        &self,
        leaders: &BTreeMap<TopicPartition, i32>,
        end: OffsetEdge,
    ) -> Result<BTreeMap<TopicPartition, i64>, SourceError> {
        let mut brokers: BTreeMap<i32, Vec<(TopicPartition, ())>> = BTreeMap::new();
        for (topic_partition, leader) in leaders {
            brokers.entry(*leader).or_default().push((topic_partition.clone(), ()));
        }
        let timestamp = match end {
            OffsetEdge::First => -2,
            OffsetEdge::Next => -1,
        };
        let mut offsets = BTreeMap::new();
        for (broker, topic_partitions) in brokers {
            let topics = by_topic(topic_partitions).into_iter().map(|(topic, partitions)| {
                let partitions = partitions.into_iter().map(|(partition, ())| {
                    ListOffsetsPartition::default()
                        .with_partition_index(partition)
                        .with_timestamp(timestamp)
                });
                ListOffsetsTopic::default()
                    .with_name(topic_name(&topic))
                    .with_partitions(partitions.collect())
            });
            let broker = self.broker(broker).await?;
            let knows_transactions = broker.version::<ListOffsetsRequest>(ENDS_VERSION)? >= 2;
            let request = ListOffsetsRequest::default()
                .with_replica_id(BrokerId(-1))
                .with_isolation_level(if knows_transactions { READ_COMMITTED } else { 0 })
                .with_topics(topics.collect());
            let answer = broker.ask(&request, ENDS_VERSION, Duration::ZERO).await?;
            for topic in answer.topics {
                let name: Arc<str> = topic.name.as_str().into();
                for partition in topic.partitions {
                    let topic_partition = TopicPartition {
                        topic: name.clone(),
                        partition: partition.partition_index,
                    };
                    check(&format!("the ends of {topic_partition}"), partition.error_code)?;
                    offsets.insert(topic_partition, partition.offset);
                }
            }
        }
        if let Some(missing) =
            leaders.keys().find(|topic_partition| !offsets.contains_key(topic_partition))
        {
            return Err(refused(
                &format!("the ends of {missing}"),
                kafka_protocol::ResponseError::UnknownTopicOrPartition,
            ));
        }
        Ok(offsets)
    }
}
