//! Executions spread over several stores, and one store for what they share.
//!
//! Whatever belongs to one execution is in the store that [`shard_for`] names, and nowhere else.
//! Catalog, secrets, leases, cursors, runtimes, subscriptions, schedules, objects and content are in
//! the *cluster* store, which may be one of the shards. A call about one execution asks one store;
//! a list asks all of them at once.
//!
//! No call needs two stores in one transaction. Where a call touches several, a crash in between
//! leaves what may be repeated: a due row that is delivered again, content nobody refers to.
//!
//! A store that is down fails the calls that need it, with an error that names it
//! ([`StoreError::Shard`]). A list needs all of them: it fails rather than leave rows out. Taking
//! work (due rows, the outbox) needs any: what the others have is handed out.

mod cluster;
mod holdings;
mod imports;
mod keeping;
mod log;
mod reads;
mod retention;
mod spread;
mod tail;
mod traffic;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use futures::future::join_all;
use noetl_model::{ExecutionId, shard_for};

use crate::{BlobError, Store, StoreError};

/// The most shards there can be: their number is part of an outbox row's id.
pub const SHARDS_MAX: usize = 1024;

/// One of the stores.
#[derive(Clone)]
struct Part {
    name: Arc<str>,
    store: Arc<dyn Store>,
}

impl Part {
    /// The answer, with this store's name if it is an error.
    fn named<T, E: Named>(&self, answer: Result<T, E>) -> Result<T, E> {
        answer.map_err(|error| error.of(&self.name))
    }
}

/// An error that can say which store it is of.
trait Named {
    fn of(self, name: &Arc<str>) -> Self;
}

impl Named for StoreError {
    fn of(self, name: &Arc<str>) -> Self {
        self.on_shard(name)
    }
}

impl Named for BlobError {
    fn of(self, name: &Arc<str>) -> Self {
        match self {
            Self::Place(error) => Self::Place(error.on_shard(name)),
            found @ (Self::Missing { .. } | Self::Corrupt { .. }) => found,
        }
    }
}

/// A store made of several.
pub struct Sharded {
    cluster: Part,
    shards: Vec<Part>,
    /// Which shard is asked first for work, so that a small limit does not favour any.
    turn: AtomicUsize,
}

impl Sharded {
    /// Executions over `shards`, in the order that gives them their numbers, each with a name for
    /// messages. The order and the number of shards belong to the data: with others, executions
    /// are looked for where they are not.
    ///
    /// # Panics
    ///
    /// Without a shard, or with more than [`SHARDS_MAX`].
    pub fn new(cluster: Arc<dyn Store>, shards: Vec<(String, Arc<dyn Store>)>) -> Self {
        let count = shards.len();
        assert!((1..=SHARDS_MAX).contains(&count), "{count} shards, not 1 to {SHARDS_MAX}");
        let part = |(name, store): (String, Arc<dyn Store>)| Part { name: name.into(), store };
        let cluster = Part { name: "cluster".into(), store: cluster };
        Self::of(cluster, shards.into_iter().map(part).collect())
    }

    fn of(cluster: Part, shards: Vec<Part>) -> Self {
        Self { cluster, shards, turn: AtomicUsize::new(0) }
    }

    /// Every shard by its number, for whoever works on one alone: the same stores, with errors that
    /// name them, and with what is not about an execution still in the cluster store.
    pub fn shards(&self) -> Vec<Arc<dyn Store>> {
        let alone = |shard: &Part| -> Arc<dyn Store> {
            Arc::new(Self::of(self.cluster.clone(), vec![shard.clone()]))
        };
        self.shards.iter().map(alone).collect()
    }

    /// The number of the shard this execution is in.
    fn number_of(&self, execution: ExecutionId) -> usize {
        let count = u32::try_from(self.shards.len()).expect("there are at most SHARDS_MAX");
        usize::try_from(shard_for(execution, count)).expect("a number below a usize")
    }

    /// The shard this execution is in.
    fn of_execution(&self, execution: ExecutionId) -> &Part {
        &self.shards[self.number_of(execution)]
    }

    /// Whether the cluster store is none of the shards.
    fn has_cluster_apart(&self) -> bool {
        !self.shards.iter().any(|shard| Arc::ptr_eq(&shard.store, &self.cluster.store))
    }

    /// Asks every shard at once, and answers in their order; an error if any of them failed.
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
