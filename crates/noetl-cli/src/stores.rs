//! Opens the stores of a process: one database, or several shards.

use std::sync::Arc;

use noetl_config::Settings;
use noetl_config::tree;
use noetl_store::{PublishingStore, Sharded, Store, StoreError};

use crate::database::{Database, OpenStore};
use crate::error::{CliError, ErrorKind};
use crate::settings;
use crate::shards::{CLUSTER, SHARDS, Shards};

/// Name of the cursor in each shard that stores its number and the number of shards. With a
/// different number or order of shards, executions would be looked up in the wrong shard.
const MARK: &str = "shard";

/// Factor of the shard count in the cursor's value; the shard number is the remainder.
const MARK_COUNT: i64 = 1 << 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreLocation {
    /// A single database for everything.
    One(Database),
    /// Executions distributed over several databases.
    Spread(Shards),
}

impl StoreLocation {
    /// Returns the configured databases, else the file in the data directory.
    pub(crate) fn configured(settings: &Settings) -> Result<Self, CliError> {
        let database: tree::Database = settings::decode(settings)?;
        let default = || Self::One(Database::in_directory(&database.data));
        Ok(Self::named(&database)?.unwrap_or_else(default))
    }

    /// Returns the configured databases: the shards, else the URL, else the Postgres host, else
    /// `None`.
    pub(crate) fn named(settings: &tree::Database) -> Result<Option<Self>, CliError> {
        match (Shards::configured(settings)?, &settings.url) {
            (None, _) => Ok(Database::named(settings)?.map(Self::One)),
            (Some(shards), None) => Ok(Some(Self::Spread(shards))),
            (Some(_), Some(_)) => {
                let message = format!("{SHARDS} and a database URL are both given");
                Err(CliError::new(ErrorKind::Config, message).hint("leave one of them out"))
            }
        }
    }

    /// Returns the names of the databases for messages, without passwords.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::One(database) => database.name(),
            Self::Spread(Shards { shards, .. }) => {
                let numbered = shards.iter().enumerate();
                let names = numbered.map(|(number, shard)| format!("{number} {}", shard.name()));
                format!("{} shards: {}", shards.len(), names.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// Opens the databases and migrates their schemas to the latest version.
    pub(crate) async fn open(self) -> Result<OpenStores, CliError> {
        match self {
            Self::One(database) => {
                let open = database.open().await?;
                let store = open.store();
                if let Some(mark) = mark(&*store).await? {
                    let (number, count) = (mark % MARK_COUNT, mark / MARK_COUNT);
                    let message = format!("the database is shard {number} of {count}");
                    return Err(CliError::new(ErrorKind::Config, message)
                        .hint(format!("name all of them in {SHARDS}")));
                }
                Ok(OpenStores { open: vec![open], shards: vec![store.clone()], routed: store })
            }
            Self::Spread(shards) => spread(shards).await,
        }
    }
}

pub(crate) struct OpenStores {
    open: Vec<OpenStore>,
    /// Store that routes each call to its database.
    pub(crate) routed: Arc<dyn Store>,
    /// Stores of executions, by shard number.
    pub(crate) shards: Vec<Arc<dyn Store>>,
}

impl OpenStores {
    /// Returns each database once, with its name for messages.
    pub(crate) fn databases(&self) -> Vec<(String, Arc<dyn PublishingStore>)> {
        let shards = self.shards.len();
        let name = |number: usize| match (self.open.len(), number) {
            (1, _) => "database".to_owned(),
            (_, number) if number < shards => format!("shard {number}"),
            _ => "cluster".to_owned(),
        };
        let open = self.open.iter().enumerate();
        open.map(|(number, open)| (name(number), open.store() as _)).collect()
    }

    /// Closes all stores. References held by requests keep a store open until they are dropped.
    pub(crate) async fn close(self) {
        let Self { open, routed, shards } = self;
        drop((routed, shards));
        for store in open {
            store.close().await;
        }
    }
}

async fn spread(settings: Shards) -> Result<OpenStores, CliError> {
    if crate::settings::section::<tree::Database>()?.direct_url.is_some() {
        let message = format!("NOETL_DATABASE_DIRECT_URL names one database, and {SHARDS} several");
        return Err(CliError::new(ErrorKind::Config, message).hint(
            "leave it out, and let the entries lead past a proxy that pools by transaction",
        ));
    }
    let Shards { cluster, shards } = settings;
    let count = shards.len();
    // A file can be opened only once, so a cluster database that is also a shard is that shard's
    // store.
    let same = cluster.as_ref().map(|cluster| shards.iter().position(|one| one.is_same(cluster)));
    let mut open = Vec::with_capacity(count + 1);
    let mut named: Vec<(String, Arc<dyn Store>)> = Vec::with_capacity(count);
    for (number, database) in shards.into_iter().enumerate() {
        let which = format!("shard {number}, {}", database.name());
        let store = database.open().await.map_err(|failure| failure.about(&which))?;
        check(&*store.store(), number, count).await.map_err(|failure| failure.about(&which))?;
        named.push((format!("shard {number}"), store.store()));
        open.push(store);
    }
    let cluster = match (cluster, same) {
        (None, _) => named[0].1.clone(),
        (Some(_), Some(Some(number))) => named[number].1.clone(),
        (Some(database), _) => {
            let which = format!("{CLUSTER}, {}", database.name());
            let store = database.open().await.map_err(|failure| failure.about(&which))?;
            open.push(store);
            open[count].store()
        }
    };
    // Write the markers only after all shards passed the check, so that a failed start leaves none.
    for (number, (_, store)) in named.iter().enumerate() {
        put_mark(&**store, number, count).await?;
    }
    let routed = Arc::new(Sharded::new(cluster, named));
    Ok(OpenStores { open, shards: routed.shards(), routed })
}

/// Rejects a database that is another shard, or that contains executions of a server without
/// shards.
async fn check(store: &dyn Store, number: usize, count: usize) -> Result<(), CliError> {
    match mark(store).await? {
        Some(stored) if stored == mark_of(number, count) => Ok(()),
        Some(stored) => {
            let (number, count) = (stored % MARK_COUNT, stored / MARK_COUNT);
            let message = format!("it was shard {number} of {count} before");
            Err(CliError::new(ErrorKind::Config, message)
                .hint("shards keep their number and order: executions are found by them"))
        }
        None if count > 1 && store.newest_id().await.map_err(failed)?.is_some() => {
            let message = "it holds executions of a server without shards";
            Err(CliError::new(ErrorKind::Config, message).hint("begin shards with empty databases"))
        }
        None => Ok(()),
    }
}

/// Writes the marker of a shard. A single shard gets none, because it can also be used without
/// sharding.
async fn put_mark(store: &dyn Store, number: usize, count: usize) -> Result<(), CliError> {
    if count > 1 {
        store.advance(MARK, mark_of(number, count), None).await.map_err(failed)?;
    }
    Ok(())
}

fn mark_of(number: usize, count: usize) -> i64 {
    let as_number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    as_number(count) * MARK_COUNT + as_number(number)
}

fn failed(error: StoreError) -> CliError {
    CliError::from_error(ErrorKind::Config, &error)
}

async fn mark(store: &dyn Store) -> Result<Option<i64>, CliError> {
    store.cursor(MARK).await.map_err(failed)
}

#[cfg(test)]
mod tests {
    use noetl_store::{CursorStore, MemoryStore};

    use super::*;

    #[tokio::test]
    async fn a_shard_rejects_another_number_or_shard_count() {
        let store = MemoryStore::new();
        for _ in 0..2 {
            check(&store, 1, 3).await.expect("the same shard");
            put_mark(&store, 1, 3).await.expect("a mark");
        }
        for (number, count) in [(0, 3), (2, 3), (1, 2), (1, 4), (0, 1)] {
            let refused = check(&store, number, count).await.expect_err("another");
            assert_eq!(refused.text(), "it was shard 1 of 3 before", "{number} of {count}");
        }
        let single = MemoryStore::new();
        put_mark(&single, 0, 1).await.expect("one alone");
        assert_eq!(single.cursor(MARK).await.expect("a read"), None);
    }
}
