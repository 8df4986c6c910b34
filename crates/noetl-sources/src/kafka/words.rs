//! How far a group has read: what is answered for, and what the cluster was told of it.
//!
//! A group of ours has no members. One runtime acts on a subscription at a time, so nobody has to
//! share partitions out, and what is committed without a member is refused as soon as somebody
//! else joins the group: then two would read the same.

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

use super::cluster::{Cluster, Place, by_topic, topic_name};
use super::connection::check;
use super::{refused, wrong};
use crate::ledger::Ledger;
use crate::source::{Message, SourceError};

/// How often the cluster is told what it knows. It forgets groups that are silent for a week, and may be
/// set to forget them sooner.
const REMIND_EVERY: Duration = Duration::from_secs(3600);

/// How often a word is said over a new connection when the old one was lost with it.
const TRIES: usize = 2;

pub(super) struct Words {
    cluster: Cluster,
    told: Shared<BTreeMap<Place, Told>>,
    /// One word at a time: whoever waits finds that the one before spoke for it as well.
    saying: Mutex<Instant>,
}

struct Told {
    ledger: Ledger<(), Message>,
    /// Up to where everything is answered for.
    passed: i64,
    /// What the cluster knows of that.
    said: i64,
    /// Whether what is answered for says nothing any more, because the place was set anew.
    is_set: bool,
}

impl Words {
    pub(super) fn new(cluster: Cluster) -> Self {
        Self { cluster, told: Shared::default(), saying: Mutex::new(Instant::now()) }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Place, Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn group(&self) -> GroupId {
        GroupId(StrBytes::from_string(self.cluster.settings.group.clone()))
    }

    /// How far the group has read each of these; none of those it never read.
    pub(super) async fn read(
        &self,
        places: Vec<Place>,
    ) -> Result<BTreeMap<Place, Option<i64>>, SourceError> {
        let topics = by_topic(places.into_iter().map(|place| (place, ())).collect());
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
        check("how far the group has read", answer.error_code)?;
        let mut found = BTreeMap::new();
        for topic in answer.topics {
            for partition in topic.partitions {
                let place = Place {
                    topic: topic.name.as_str().into(),
                    partition: partition.partition_index,
                };
                check(&format!("how far {place} was read"), partition.error_code)?;
                let offset = partition.committed_offset;
                found.insert(place, (offset >= 0).then_some(offset));
            }
        }
        Ok(found)
    }

    /// Begins with these places, and tells the cluster: so they are kept before anything is read, and
    /// a group that others are members of is found out.
    pub(super) async fn begin(&self, places: &BTreeMap<Place, i64>) -> Result<(), SourceError> {
        self.commit(places.iter().map(|(place, at)| (place.clone(), *at)).collect()).await?;
        let mut told = self.lock();
        for (place, at) in places {
            let new = Told { ledger: Ledger::default(), passed: *at, said: *at, is_set: false };
            told.entry(place.clone()).or_insert(new);
        }
        Ok(())
    }

    /// Notes a message that is to be handed out.
    pub(super) fn hand_out(&self, place: &Place, offset: u64, message: Message) {
        if let Some(told) = self.lock().get(place) {
            told.ledger.begin(offset, (), message);
        }
    }

    /// Notes that everything before `next` was looked at, so that what is for nobody is passed as well.
    pub(super) fn looked_at(&self, place: &Place, next: i64) {
        if let Some(told) = self.lock().get_mut(place)
            && told.ledger.len() == 0
        {
            told.passed = told.passed.max(next);
        }
    }

    /// How many of a partition's messages are not passed.
    pub(super) fn open(&self, place: &Place) -> usize {
        self.lock().get(place).map_or(0, |told| told.ledger.len())
    }

    /// Up to where everything is answered for.
    pub(super) fn passed(&self) -> BTreeMap<Place, i64> {
        self.lock().iter().map(|(place, told)| (place.clone(), told.passed)).collect()
    }

    pub(super) fn due(&self, now: Instant, most: usize) -> Vec<(Place, u64, Message)> {
        let mut due = Vec::new();
        for (place, told) in &*self.lock() {
            let found = told.ledger.due(now, most - due.len());
            due.extend(found.into_iter().map(|(offset, found)| (place.clone(), offset, found)));
        }
        due
    }

    pub(super) fn again(&self, place: &Place, offset: u64, after: Duration) {
        if let Some(told) = self.lock().get(place) {
            told.ledger.again(offset, after);
        }
    }

    /// Notes that a message is answered for, and tells the cluster if that moves the place.
    pub(super) async fn done(&self, place: &Place, offset: u64) -> Result<(), SourceError> {
        let passed = {
            let mut told = self.lock();
            let Some(told) = told.get_mut(place) else { return Ok(()) };
            let Some((last, ())) = told.ledger.done(offset) else { return Ok(()) };
            told.passed = told.passed.max(i64::try_from(last).unwrap_or(i64::MAX - 1) + 1);
            told.passed
        };
        let mut last = self.saying.lock().await;
        let is_said = {
            let told = self.lock();
            told.get(place).is_none_or(|told| told.is_set || told.said >= passed)
        };
        if is_said { Ok(()) } else { self.say(&mut last).await }
    }

    /// Tells the cluster what it was not told, and now and then what it was.
    pub(super) async fn remind(&self) -> Result<(), SourceError> {
        let mut last = self.saying.lock().await;
        if last.elapsed() >= REMIND_EVERY {
            for told in self.lock().values_mut() {
                told.said = -1;
            }
        }
        self.say(&mut last).await
    }

    async fn say(&self, last: &mut Instant) -> Result<(), SourceError> {
        let news: Vec<(Place, i64)> = {
            let told = self.lock();
            let unsaid = told.iter().filter(|(_, told)| !told.is_set && told.said < told.passed);
            unsaid.map(|(place, told)| (place.clone(), told.passed)).collect()
        };
        if news.is_empty() {
            return Ok(());
        }
        self.commit(news.clone()).await?;
        *last = Instant::now();
        let mut told = self.lock();
        for (place, passed) in news {
            if let Some(told) = told.get_mut(&place) {
                told.said = told.said.max(passed);
            }
        }
        Ok(())
    }

    /// Goes on somewhere else, whatever is answered for later.
    pub(super) async fn set(&self, place: &Place, at: i64) -> Result<(), SourceError> {
        let _last = self.saying.lock().await;
        self.commit(vec![(place.clone(), at)]).await?;
        if let Some(told) = self.lock().get_mut(place) {
            told.is_set = true;
        }
        Ok(())
    }

    async fn commit(&self, places: Vec<(Place, i64)>) -> Result<(), SourceError> {
        let topics = by_topic(places).into_iter().map(|(topic, partitions)| {
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
            _ => refused(&format!("how far '{group}' has read is not kept"), error),
        }
    }
}
