//! Distributes executions over several stores, with one store for shared data.
//!
//! All data of one execution is in the store that [`shard_for`] selects. Catalog, secrets, leases,
//! cursors, runtimes, subscriptions, schedules, objects, and blobs are in the *cluster* store,
//! which may be one of the shards. A call about one execution queries one store; a listing queries
//! all of them concurrently.
//!
//! No call needs a transaction across two stores. If a call involves several, a crash in between
//! leaves only repeatable work: a timer that is delivered again, or an unreferenced blob.
//!
//! A store that is unavailable fails the calls that need it, with an error that names it
//! ([`StoreError::Shard`]). A listing needs all stores: it fails rather than omit rows. Claiming
//! work (timers, the outbox) needs any: the work of the available stores is returned.

mod cluster;
mod fan_out;
mod holdings;
mod imports;
mod keeping;
mod log;
mod reads;
mod retention;
mod tail;
mod traffic;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use futures::future::join_all;
use noetl_model::{ExecutionId, shard_for};

use crate::{BlobError, Store, StoreError};

/// Maximum number of shards: the shard number is part of an outbox row's ID.
pub const SHARDS_MAX: usize = 1024;

/// A store with its name.
#[derive(Clone)]
struct NamedStore {
    name: Arc<str>,
    store: Arc<dyn Store>,
}

impl NamedStore {
    /// Adds the name of this store to an error.
    fn named<T, E: ShardError>(&self, answer: Result<T, E>) -> Result<T, E> {
        answer.map_err(|error| error.with_shard(&self.name))
    }
}

/// An error that can carry the name of a store.
trait ShardError {
    fn with_shard(self, name: &Arc<str>) -> Self;
}

impl ShardError for StoreError {
    fn with_shard(self, name: &Arc<str>) -> Self {
        self.on_shard(name)
    }
}

impl ShardError for BlobError {
    fn with_shard(self, name: &Arc<str>) -> Self {
        match self {
            Self::Place(error) => Self::Place(error.on_shard(name)),
            found @ (Self::Missing { .. } | Self::Corrupt { .. }) => found,
        }
    }
}

/// A store made of several.
pub struct Sharded {
    cluster: NamedStore,
    shards: Vec<NamedStore>,
    /// Number of the shard to query first for work, so that a small limit does not favor any.
    turn: AtomicUsize,
}

impl Sharded {
    /// Creates a store over `shards`, numbered in this order, each with a name for messages. The
    /// order and the number of shards are part of the data: with others, lookups go to the wrong
    /// shard.
    ///
    /// # Panics
    ///
    /// Panics if there is no shard, or more than [`SHARDS_MAX`].
    pub fn new(cluster: Arc<dyn Store>, shards: Vec<(String, Arc<dyn Store>)>) -> Self {
        let count = shards.len();
        assert!((1..=SHARDS_MAX).contains(&count), "{count} shards, not 1 to {SHARDS_MAX}");
        let part =
            |(name, store): (String, Arc<dyn Store>)| NamedStore { name: name.into(), store };
        let cluster = NamedStore { name: "cluster".into(), store: cluster };
        Self::from_named(cluster, shards.into_iter().map(part).collect())
    }

    fn from_named(cluster: NamedStore, shards: Vec<NamedStore>) -> Self {
        Self { cluster, shards, turn: AtomicUsize::new(0) }
    }

    /// Returns each shard as a store of its own, by number, for callers that work on one alone.
    /// Errors name the shard, and data that belongs to no execution is still in the cluster store.
    pub fn shards(&self) -> Vec<Arc<dyn Store>> {
        let alone = |shard: &NamedStore| -> Arc<dyn Store> {
            Arc::new(Self::from_named(self.cluster.clone(), vec![shard.clone()]))
        };
        self.shards.iter().map(alone).collect()
    }

    /// Returns the number of the shard that contains this execution.
    fn number_of(&self, execution: ExecutionId) -> usize {
        let count = u32::try_from(self.shards.len()).expect("there are at most SHARDS_MAX");
        usize::try_from(shard_for(execution, count)).expect("a number below a usize")
    }

    /// Returns the shard that contains this execution.
    fn of_execution(&self, execution: ExecutionId) -> &NamedStore {
        &self.shards[self.number_of(execution)]
    }

    /// Returns `true` if the cluster store is not one of the shards.
    fn has_cluster_apart(&self) -> bool {
        !self.shards.iter().any(|shard| Arc::ptr_eq(&shard.store, &self.cluster.store))
    }

    /// Calls every shard concurrently and returns the results in shard order, or an error if any
    /// call failed.
    async fn all<'a, T, F, A>(&'a self, ask: A) -> Result<Vec<T>, StoreError>
    where
        A: Fn(&'a dyn Store) -> F,
        F: Future<Output = Result<T, StoreError>>,
    {
        let asked = self.shards.iter().map(|shard| ask(&*shard.store));
        let answers = join_all(asked).await;
        self.shards.iter().zip(answers).map(|(shard, answer)| shard.named(answer)).collect()
    }
}
