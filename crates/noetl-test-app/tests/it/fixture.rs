//! Databases that earlier programs wrote, and what has to hold of each after an upgrade.
//!
//! A fixture is a file `vNN-COMMIT.sql`, a database of schema version NN, and a JSON file of its contents as
//! the program that wrote it reported them. `scripts/upgrade-fixture.sh` writes both.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use noetl_control::{ControlPlane, Options};
use noetl_engine::{Execution, Status};
use noetl_model::{ExecutionId, Seq, Tenant};
use noetl_secrets::{EncryptionKey, SecretRequest};
use noetl_store::{CredentialFilter, Store, SystemClock};
use noetl_views::verify;
use serde::Deserialize;

/// Key that encrypted the credentials of every fixture.
const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// A database that an earlier program wrote.
#[derive(Debug)]
pub(crate) struct Fixture {
    /// Path of its SQL.
    pub(crate) sql: PathBuf,
    contents: Contents,
}

#[derive(Debug, Deserialize)]
struct Contents {
    commit: String,
    schema: usize,
    credentials: usize,
    executions: Vec<Recorded>,
}

#[derive(Debug, Deserialize)]
struct Recorded {
    id: String,
    playbook: String,
    status: String,
    events: u64,
}

impl Fixture {
    /// Reads the fixtures in a directory, oldest schema first.
    ///
    /// # Panics
    ///
    /// Panics if a file is not readable, lacks its counterpart, or has the name of another version.
    pub(crate) fn all(directory: &Path) -> Vec<Self> {
        let files = std::fs::read_dir(directory).expect("a directory of fixtures");
        let files = files.map(|file| file.expect("a file").path());
        let is_sql = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "sql");
        let mut fixtures: Vec<Self> = files.filter(is_sql).map(Self::read).collect();
        fixtures.sort_by_key(Self::schema);
        fixtures
    }

    fn read(sql: PathBuf) -> Self {
        let text = std::fs::read_to_string(sql.with_extension("json")).expect("its contents");
        let contents: Contents = serde_json::from_str(&text).expect("its contents");
        let name = format!("v{:02}-", contents.schema);
        let stem = sql.file_stem().and_then(|stem| stem.to_str());
        assert!(stem.is_some_and(|stem| stem.starts_with(&name)), "{stem:?} has schema {name}");
        Self { sql, contents }
    }

    /// Returns the version of its schema: how many migrations it had.
    pub(crate) fn schema(&self) -> usize {
        self.contents.schema
    }

    /// Checks a store that was opened on this database, then lets its running executions end.
    ///
    /// # Panics
    ///
    /// Panics where the store differs from the recorded contents or from its own event logs.
    pub(crate) async fn check(&self, store: Arc<dyn Store>) {
        let name = format!("schema {}, commit {}", self.contents.schema, self.contents.commit);
        let recorded = &self.contents.executions;
        let events: u64 = recorded.iter().map(|execution| execution.events).sum();
        let (count, verified_events) = verified(&*store, &name).await;
        assert_eq!((count, verified_events), (recorded.len(), events), "{name}");
        for execution in recorded {
            execution.check(&*store, &name).await;
        }
        self.resume(store.clone(), &name).await;
        let (count, verified_events) = verified(&*store, &name).await;
        assert!(
            count == recorded.len() && verified_events >= events,
            "{name}: {count} with {verified_events} events"
        );
    }

    /// Opens a control plane that has the key, and waits until no execution is running.
    async fn resume(&self, store: Arc<dyn Store>, name: &str) {
        let encryption_key = Some(EncryptionKey::from_base64(KEY).expect("a key"));
        let options = Options { slots: 4, encryption_key, ..Options::default() };
        let control = ControlPlane::open(options, store, Arc::new(SystemClock)).await;
        let control = control.expect("a control plane");
        let worker = noetl_test_app::worker(&control);
        let tenant = Tenant::default();
        for execution in &self.contents.executions {
            let ended =
                control.journal.executions.wait_until_finished(&tenant, execution.id()).await;
            let ended = ended.expect("a row").expect("an execution");
            let status = match execution.status.as_str() {
                "RUNNING" => "COMPLETED",
                status => status,
            };
            let about = format!("{name}: {}: {:?}", execution.playbook, ended.error);
            assert_eq!(ended.status.as_str(), status, "{about}");
        }
        let credentials =
            control.secrets.credentials.list(&tenant, &CredentialFilter::default()).await;
        let credentials = credentials.expect("credentials");
        assert_eq!(credentials.len(), self.contents.credentials, "{name}");
        for credential in credentials {
            let asking = SecretRequest {
                who: "test".into(),
                operation: "resolve",
                execution: None,
                parent: None,
                worker: None,
            };
            let shown =
                control.secrets.credentials.reveal(&tenant, &credential.kept.name, &asking).await;
            assert_eq!(shown.expect(name).1["token"], "secret", "{name}");
        }
        control.drain();
        worker.await.expect("a worker that ends");
        control.close().await;
    }
}

impl Recorded {
    fn id(&self) -> ExecutionId {
        self.id.parse().expect("an execution ID")
    }

    /// Checks the row of an execution and the state that its log folds to.
    async fn check(&self, store: &dyn Store, name: &str) {
        let about = format!("{name}: {}", self.playbook);
        let row = store.execution(&Tenant::default(), self.id()).await.expect("a row");
        assert_eq!(row.expect(&about).status.as_str(), self.status, "{about}");
        let log = store.read(self.id(), Seq::START, usize::MAX).await.expect("a log");
        assert_eq!(log.len() as u64, self.events, "{about}");
        let mut state = Execution::new(self.id());
        for event in &log {
            state.apply(event);
        }
        let status = match state.status() {
            Status::Absent => "ABSENT",
            Status::Running => "RUNNING",
            Status::Completed => "COMPLETED",
            Status::Failed => "FAILED",
            Status::Cancelled => "CANCELLED",
        };
        assert_eq!(status, self.status, "{about}");
    }
}

/// Verifies every log of a store, and returns how many executions and events it has.
async fn verified(store: &dyn Store, name: &str) -> (usize, u64) {
    let verified = verify(store, ExecutionId::new(i64::MIN), usize::MAX).await.expect("a store");
    assert!(verified.problems.is_empty(), "{name}: {:?}", verified.problems);
    (verified.executions, verified.events)
}
