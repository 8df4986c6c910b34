//! Executions spread over two databases, one of which becomes unavailable.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use noetl_control::{ControlPlane, Options as ControlOptions};
use noetl_journal::{StartError, StartRequest, SubmitError};
use noetl_model::{CatalogId, ExecutionId, Tenant, shard_for};
use noetl_store::conformance::outbox_on;
use noetl_store::{
    ExecutionFilter, ExecutionStatus, OutboxStore, Sharded, Store, StoreError, SystemClock,
};
use noetl_store_postgres::{Options, PostgresStore};
use noetl_test_services::postgres::TestDatabase;

use crate::postgres::replicas::{fan, open_commands, work};

/// Starts per round: enough to reach both databases in practice.
const STARTS: usize = 24;

struct House {
    databases: [TestDatabase; 2],
    stores: [Arc<PostgresStore>; 2],
    routed: Arc<Sharded>,
    control: ControlPlane,
    catalog: Option<CatalogId>,
    tenant: Tenant,
}

async fn store(database: &TestDatabase) -> Arc<PostgresStore> {
    let options = Options::new(&database.url()).expect("a URL").outbox(outbox_on());
    // Short, because each call to the unavailable database waits this long.
    let options = options.acquire_timeout(Duration::from_secs(1));
    Arc::new(PostgresStore::open(options).await.expect("a store"))
}

impl House {
    async fn open() -> Self {
        let databases = [TestDatabase::new(), TestDatabase::new()];
        let stores = [store(&databases[0]).await, store(&databases[1]).await];
        let named = stores.iter().enumerate().map(|(number, store)| {
            let store: Arc<dyn Store> = store.clone();
            (format!("shard {number}"), store)
        });
        let routed = Arc::new(Sharded::new(stores[0].clone(), named.collect()));
        let options = ControlOptions { slots: 0, ..ControlOptions::default() };
        let (shards, clock) = (routed.shards(), Arc::new(SystemClock));
        let control = ControlPlane::open_sharded(options, routed.clone(), shards, clock).await;
        let control = control.expect("a control plane");
        let tenant = Tenant::default();
        let registered = control.catalog.register(&tenant, fan(1), "playbook", false).await;
        let catalog = Some(registered.expect("a playbook").0.id);
        Self { databases, stores, routed, control, catalog, tenant }
    }

    async fn start(&self) -> Result<ExecutionId, StartError> {
        let request = StartRequest { catalog: self.catalog, ..StartRequest::default() };
        let started = self.control.journal.executions.start(&self.tenant, request).await;
        started.map(|started| started.execution)
    }

    /// Runs the commands of a database until none is open.
    async fn work_off(&self, number: usize) {
        loop {
            let commands = open_commands(&*self.stores[number]).await;
            if commands.is_empty() {
                return;
            }
            for command in &commands {
                work(&self.control, command.execution, command).await;
            }
        }
    }

    async fn list(&self) -> Result<Vec<ExecutionId>, StoreError> {
        let filter = ExecutionFilter { limit: 1000, ..ExecutionFilter::default() };
        let rows = self.control.journal.executions.list(&self.tenant, &filter).await?;
        Ok(rows.iter().map(|row| row.id).collect())
    }

    async fn status(&self, id: ExecutionId) -> Result<ExecutionStatus, StoreError> {
        let row = self.stores[home(id)].clone() as Arc<dyn Store>;
        let row = row.execution(&self.tenant, id).await?;
        Ok(row.expect("a row in its database").status)
    }

    /// Lets the second database accept connections, or terminates and refuses them.
    fn set_away(&self, is_away: bool) {
        let url = self.databases[1].url();
        let name = url.rsplit('/').next().expect("a name");
        let other = &self.databases[0];
        other.psql(&format!("alter database {name} allow_connections {}", !is_away));
        if is_away {
            other.psql(&format!(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"
            ));
        }
    }
}

fn home(id: ExecutionId) -> usize {
    usize::try_from(shard_for(id, 2)).expect("0 or 1")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unavailable_database_fails_only_its_executions() {
    let house = Box::pin(House::open()).await;
    let mut all = BTreeSet::new();
    for _ in 0..STARTS {
        let id = house.start().await.expect("a start");
        for (number, store) in house.stores.iter().enumerate() {
            let store: Arc<dyn Store> = store.clone();
            let is_stored = store.tenant_of(id).await.expect("a read").is_some();
            assert_eq!(is_stored, number == home(id), "{id} in {number}");
        }
        all.insert(id);
    }
    assert_eq!(all.iter().map(|id| home(*id)).collect::<BTreeSet<_>>().len(), 2);
    let listed = house.list().await.expect("a list");
    assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), all);
    assert_eq!(listed.len(), all.len());

    house.set_away(true);
    let missing = house.list().await.expect_err("a list without a shard");
    assert_eq!(missing.shard(), Some("shard 1"));
    let going_out = house.routed.claim(5).await.expect("work of the other");
    assert_eq!(going_out.len(), 5);
    assert!(
        going_out.iter().all(|row| row.execution.is_some_and(|id| home(id) == 0)),
        "{going_out:?}"
    );
    let mut refused = 0;
    for _ in 0..STARTS {
        match house.start().await {
            Ok(id) => {
                assert_eq!(home(id), 0);
                all.insert(id);
            }
            Err(StartError::Submit(SubmitError::Store(error))) => {
                assert_eq!(error.shard(), Some("shard 1"), "{error:?}");
                refused += 1;
            }
            Err(other) => panic!("{other:?}"),
        }
        if refused > 0 && all.len() > STARTS {
            break;
        }
    }
    assert!(refused > 0 && all.len() > STARTS, "some of both");
    house.work_off(0).await;
    for id in &all {
        let row = house.control.journal.executions.get(&house.tenant, *id).await;
        match home(*id) {
            0 => assert_eq!(house.status(*id).await.expect("a read"), ExecutionStatus::Completed),
            _ => assert_eq!(row.expect_err("away").shard(), Some("shard 1")),
        }
    }

    house.set_away(false);
    house.work_off(1).await;
    let listed = house.list().await.expect("a list");
    // A failed start may have been stored; nothing else is new.
    assert!(all.is_subset(&listed.iter().copied().collect()));
    for id in &listed {
        assert_eq!(house.status(*id).await.expect("a read"), ExecutionStatus::Completed, "{id}");
    }
    assert_eq!(open_commands(&*house.routed).await, []);
    house.control.close().await;
}
