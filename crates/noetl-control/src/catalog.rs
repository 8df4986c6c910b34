//! Catalog of documents by path and version. Stores documents as sent and compiles each playbook
//! version once.

mod agents;
mod checkup;
mod editing;
mod findings;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use noetl_model::{CatalogId, Clock, Tenant};
use noetl_playbook::{
    CheckReport, CheckedSchedule, CheckedSubscription, Diagnostic, Playbook, UiSchema, check,
    check_schedule, check_subscription, describe, ui_schema,
};
use noetl_store::{CatalogEntry, CatalogVersion, NewEntry, Store, StoreError};

use self::agents::is_agent;
pub use self::checkup::Checkup;
pub use self::editing::ReplaceError;
use self::findings::{KINDS, long_path, no_path, shared_listener, unknown_kind};
use crate::ids::IdGenerator;
use crate::listeners::Listeners;
use crate::quotas::{QuotaExceeded, Quotas};
use crate::schedules::{self, ScheduleRows};
use crate::subscriptions;

/// Compiled playbooks cached in memory. A large one takes a few megabytes.
const COMPILED_MAX: usize = 256;

/// Errors of registering a document.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// The document has errors. Nothing was registered.
    #[error("the document has errors")]
    Invalid(Vec<Diagnostic>),
    /// The document would exceed a quota of the tenant.
    #[error(transparent)]
    Quota(QuotaExceeded),
    /// The store is unavailable or rejected the document.
    #[error("failed to store the document")]
    Store(#[source] StoreError),
}

/// Errors of loading a playbook.
#[derive(Debug, thiserror::Error)]
pub enum PlaybookError {
    /// No catalog entry has this ID.
    #[error("catalog entry not found")]
    NotFound,
    /// The document is not a playbook, or has errors.
    #[error("the playbook has errors")]
    Invalid(Vec<Diagnostic>),
    /// The store is unavailable.
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}

/// Cache of compiled playbooks by catalog entry. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Playbooks {
    compiled: Arc<Mutex<LruCache<CatalogId, Arc<Playbook>>>>,
}

impl Playbooks {
    pub(crate) fn new() -> Self {
        let most = std::num::NonZeroUsize::new(COMPILED_MAX).expect("more than none");
        Self { compiled: Arc::new(Mutex::new(LruCache::new(most))) }
    }

    pub(crate) async fn get(
        &self,
        store: &dyn Store,
        tenant: &Tenant,
        id: CatalogId,
    ) -> Result<Arc<Playbook>, PlaybookError> {
        if let Some(playbook) = self.lock().get(&id) {
            return Ok(playbook.clone());
        }
        let entry = store.entry(tenant, id).await.map_err(PlaybookError::Store)?;
        self.compile(entry.ok_or(PlaybookError::NotFound)?).await
    }

    async fn compile(&self, entry: CatalogEntry) -> Result<Arc<Playbook>, PlaybookError> {
        if let Some(playbook) = self.lock().get(&entry.id) {
            return Ok(playbook.clone());
        }
        let id = entry.id;
        let checked = check_aside(entry.content).await;
        let playbook = checked.playbook.ok_or(PlaybookError::Invalid(checked.diagnostics))?;
        Ok(self.keep(id, playbook))
    }

    fn keep(&self, id: CatalogId, playbook: Playbook) -> Arc<Playbook> {
        let playbook = Arc::new(playbook);
        self.lock().put(id, playbook.clone());
        playbook
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LruCache<CatalogId, Arc<Playbook>>> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Size limit in bytes up to which documents are checked on the calling thread. Small ones then
/// need no blocking thread, whose work is outside the simulated time of tests.
const IN_PLACE_MAX: usize = 4 * 1024;

/// Checks a playbook. Moves a large one to a blocking thread, because a document of 100,000 steps
/// takes a second or two.
async fn check_aside(content: String) -> CheckReport {
    if content.len() <= IN_PLACE_MAX {
        return check(&content);
    }
    let checked = tokio::task::spawn_blocking(move || check(&content)).await;
    checked.unwrap_or_else(|stopped| match stopped.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        // The task is dropped only during runtime shutdown, when no caller waits for the result.
        Err(_) => CheckReport { playbook: None, diagnostics: Vec::new() },
    })
}

/// Catalog service. Cheap to clone.
#[derive(Clone)]
pub struct Catalog {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: IdGenerator,
    playbooks: Playbooks,
    listeners: Listeners,
    schedules: ScheduleRows,
    quotas: Quotas,
}

impl Catalog {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ids: IdGenerator,
        playbooks: Playbooks,
        listeners: Listeners,
        schedules: ScheduleRows,
        quotas: Quotas,
    ) -> Self {
        Self { store, clock, ids, playbooks, listeners, schedules, quotas }
    }

    /// Registers a document as the next version of its path. Returns the entry and its warnings.
    /// Rejects a playbook, subscription, or schedule with errors and an unknown kind, unless
    /// `force` is set. A schedule takes effect at once.
    pub async fn register(
        &self,
        tenant: &Tenant,
        content: String,
        default_kind: &str,
        force: bool,
    ) -> Result<(CatalogEntry, Vec<Diagnostic>), RegisterError> {
        let description = describe(&content).map_err(RegisterError::Invalid)?;
        let kind = if description.kind.is_empty() { default_kind } else { &description.kind };
        let kind = kind.to_lowercase();
        if !force && !KINDS.contains(&kind.as_str()) {
            return Err(RegisterError::Invalid(vec![unknown_kind(&kind)]));
        }
        let path = description.path.or(description.name);
        let path = path.ok_or_else(|| RegisterError::Invalid(vec![no_path()]))?;
        if let Some(found) = long_path(&path) {
            return Err(RegisterError::Invalid(vec![found]));
        }
        let mut checked = CheckReport { playbook: None, diagnostics: Vec::new() };
        if kind == "playbook" {
            checked = check_aside(content.clone()).await;
            if !force && checked.playbook.is_none() {
                return Err(RegisterError::Invalid(checked.diagnostics));
            }
        }
        if kind == subscriptions::KIND {
            checked.diagnostics = self.check_subscription(tenant, &path, &content, force).await?;
        }
        if kind == schedules::KIND {
            checked.diagnostics = check_a_schedule(&content, force).await?;
        }
        self.quotas.check_document(&*self.store, tenant, content.len() as u64).await?;
        self.ids.ensure_leased().map_err(RegisterError::Store)?;
        let entry = NewEntry {
            id: self.ids.catalog(),
            path,
            kind,
            content,
            layout: description.workflow,
            payload: description.workload,
            meta: description.labels,
            at: self.clock.now(),
        };
        let entry = self.store.register(tenant, entry).await.map_err(RegisterError::Store)?;
        if let Some(playbook) = checked.playbook {
            self.playbooks.keep(entry.id, playbook);
        }
        // A document of another kind at its path ends a schedule.
        self.schedules
            .sync_document(tenant, &entry.path, Some(&entry.kind))
            .await
            .map_err(RegisterError::Store)?;
        Ok((entry, checked.diagnostics))
    }

    /// Checks a document without storing it. Returns all its errors and warnings.
    pub async fn check(
        &self,
        tenant: &Tenant,
        content: &str,
        default_kind: &str,
    ) -> Result<Checkup, StoreError> {
        let description = match describe(content) {
            Ok(description) => description,
            Err(diagnostics) => return Ok(Checkup { kind: None, path: None, diagnostics }),
        };
        let kind = if description.kind.is_empty() { default_kind } else { &description.kind };
        let kind = kind.to_lowercase();
        let path = description.path.or(description.name);
        let mut diagnostics: Vec<Diagnostic> =
            path.as_deref().and_then(long_path).into_iter().collect();
        if !KINDS.contains(&kind.as_str()) {
            diagnostics.push(unknown_kind(&kind));
        }
        if kind == "playbook" {
            diagnostics.extend(check_aside(content.to_owned()).await.diagnostics);
        } else if path.is_none() {
            diagnostics.push(no_path());
        }
        if kind == subscriptions::KIND {
            let path = path.as_deref().unwrap_or_default();
            match self.check_subscription(tenant, path, content, true).await {
                Ok(found) => diagnostics.extend(found),
                Err(RegisterError::Invalid(found)) => diagnostics.extend(found),
                Err(RegisterError::Store(error)) => return Err(error),
                Err(RegisterError::Quota(_)) => {}
            }
        }
        if kind == schedules::KIND {
            match check_a_schedule(content, true).await {
                Ok(found) | Err(RegisterError::Invalid(found)) => diagnostics.extend(found),
                Err(RegisterError::Store(error)) => return Err(error),
                Err(RegisterError::Quota(_)) => {}
            }
        }
        Ok(Checkup { kind: Some(kind), path, diagnostics })
    }

    /// Returns the diagnostics of a subscription. Fails if it has errors and `force` is not set.
    async fn check_subscription(
        &self,
        tenant: &Tenant,
        path: &str,
        content: &str,
        force: bool,
    ) -> Result<Vec<Diagnostic>, RegisterError> {
        let text = content.to_owned();
        let checked = tokio::task::spawn_blocking(move || check_subscription(&text)).await;
        let Ok(CheckedSubscription { subscription, mut diagnostics }) = checked else {
            // The task is dropped only during runtime shutdown, when no caller waits for the
            // result.
            return Err(RegisterError::Invalid(Vec::new()));
        };
        if !force && subscription.is_none() {
            return Err(RegisterError::Invalid(diagnostics));
        }
        if let Some(ingress) = subscription.and_then(|subscription| subscription.ingress) {
            let others = self.listeners.others(tenant, path, ingress.listener()).await;
            let others = others.map_err(RegisterError::Store)?;
            if !others.is_empty() {
                diagnostics.push(shared_listener(ingress.listener(), &others));
            }
        }
        Ok(diagnostics)
    }

    /// Returns the entry with this ID.
    pub async fn entry(
        &self,
        tenant: &Tenant,
        id: CatalogId,
    ) -> Result<Option<CatalogEntry>, StoreError> {
        self.store.entry(tenant, id).await
    }

    /// Returns the entry at this path: the given version, or the newest.
    pub async fn entry_at(
        &self,
        tenant: &Tenant,
        path: &str,
        version: Option<u32>,
    ) -> Result<Option<CatalogEntry>, StoreError> {
        self.store.entry_at(tenant, path, version).await
    }

    /// Returns every version of every entry, newest first, optionally of one kind
    /// (case-insensitive).
    pub async fn entries(
        &self,
        tenant: &Tenant,
        kind: Option<&str>,
    ) -> Result<Vec<CatalogEntry>, StoreError> {
        let kind = kind.map(str::to_lowercase);
        self.store.entries(tenant, kind.as_deref()).await
    }

    /// Returns all versions of a path, including deleted ones, highest first.
    pub async fn versions(
        &self,
        tenant: &Tenant,
        path: &str,
    ) -> Result<Vec<CatalogVersion>, StoreError> {
        self.store.versions(tenant, path).await
    }

    /// Returns the paths whose newest document has this kind (case-insensitive), in byte order.
    pub async fn paths(&self, tenant: &Tenant, kind: &str) -> Result<Vec<String>, StoreError> {
        let heads = self.store.newest_of(tenant, &kind.to_lowercase()).await?;
        Ok(heads.into_iter().map(|head| head.path).collect())
    }

    /// Deletes one version of a path, or all if `version` is `None`. Deleted versions are no longer
    /// listed or found by path; executions that were started from them continue. Returns the
    /// deleted versions.
    pub async fn delete(
        &self,
        tenant: &Tenant,
        path: &str,
        version: Option<u32>,
    ) -> Result<Vec<CatalogVersion>, StoreError> {
        let at = Some(self.clock.now());
        let deleted = self.store.set_deleted(tenant, path, version, at).await?;
        self.schedules.sync_document(tenant, path, None).await?;
        Ok(deleted)
    }

    /// Restores deleted versions of a path: one version, or all if `version` is `None`.
    pub async fn restore(
        &self,
        tenant: &Tenant,
        path: &str,
        version: Option<u32>,
    ) -> Result<Vec<CatalogVersion>, StoreError> {
        let restored = self.store.set_deleted(tenant, path, version, None).await?;
        self.schedules.sync_document(tenant, path, None).await?;
        Ok(restored)
    }

    /// Returns the input form of a document.
    pub async fn form(&self, entry: &CatalogEntry) -> Result<UiSchema, RegisterError> {
        let content = entry.content.clone();
        let read = tokio::task::spawn_blocking(move || ui_schema(&content)).await;
        // The task is dropped only during runtime shutdown, when no caller waits for the result.
        read.unwrap_or_else(|_| Err(Vec::new())).map_err(RegisterError::Invalid)
    }

    /// Returns the newest version of each document that declares itself an agent with all of these
    /// capabilities, newest first.
    pub async fn agents(
        &self,
        tenant: &Tenant,
        capabilities: &[String],
    ) -> Result<Vec<CatalogEntry>, StoreError> {
        let mut found: BTreeMap<String, CatalogEntry> = BTreeMap::new();
        for entry in self.store.entries(tenant, None).await? {
            let is_newer = found.get(&entry.path).is_none_or(|known| known.version < entry.version);
            if is_newer {
                found.insert(entry.path.clone(), entry);
            }
        }
        let mut agents: Vec<CatalogEntry> =
            found.into_values().filter(|entry| is_agent(entry, capabilities)).collect();
        agents.sort_by_key(|entry| std::cmp::Reverse((entry.created_at, entry.id)));
        Ok(agents)
    }

    pub(crate) async fn compile(
        &self,
        entry: CatalogEntry,
    ) -> Result<Arc<Playbook>, PlaybookError> {
        self.playbooks.compile(entry).await
    }
}

/// Returns the diagnostics of a schedule. Fails if it has errors and `force` is not set.
async fn check_a_schedule(content: &str, force: bool) -> Result<Vec<Diagnostic>, RegisterError> {
    let text = content.to_owned();
    let checked = tokio::task::spawn_blocking(move || check_schedule(&text)).await;
    let Ok(CheckedSchedule { schedule, diagnostics }) = checked else {
        // The task is dropped only during runtime shutdown, when no caller waits for the result.
        return Err(RegisterError::Invalid(Vec::new()));
    };
    if !force && schedule.is_none() {
        return Err(RegisterError::Invalid(diagnostics));
    }
    Ok(diagnostics)
}
