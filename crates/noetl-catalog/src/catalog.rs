//! Catalog of documents by path and version. Stores documents as sent and compiles each playbook
//! version once.

mod agents;
mod checkup;
mod editing;
mod findings;

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_identity::IdGenerator;
use noetl_model::{CatalogId, Clock, Tenant};
use noetl_playbook::{
    CheckReport, CheckedSchedule, CheckedSubscription, Diagnostic, Playbook, UiSchema,
    check_schedule, check_subscription, describe, ui_schema,
};
use noetl_store::{CatalogEntry, CatalogVersion, DocumentStore, NewEntry, StoreError};

use self::agents::is_agent;
pub use self::checkup::Checkup;
pub use self::editing::ReplaceError;
use self::findings::{KINDS, long_path, no_path, shared_listener, unknown_kind};
use crate::playbooks::{PlaybookError, Playbooks, check_aside};
use crate::quotas::{QuotaError, QuotaExceeded, Quotas};
use crate::triggers::{SCHEDULE_KIND, SUBSCRIPTION_KIND, TriggerDocuments};

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

impl From<QuotaError> for RegisterError {
    fn from(error: QuotaError) -> Self {
        match error {
            QuotaError::Over(over) => Self::Quota(over),
            QuotaError::Store(error) => Self::Store(error),
        }
    }
}

/// Catalog service. Cheap to clone.
#[derive(Clone)]
pub struct Catalog {
    store: Arc<dyn DocumentStore>,
    clock: Arc<dyn Clock>,
    ids: IdGenerator,
    playbooks: Playbooks,
    triggers: Arc<dyn TriggerDocuments>,
    quotas: Quotas,
}

impl Catalog {
    /// Creates the service. `triggers` follows the documents that start executions.
    pub fn new(
        store: Arc<dyn DocumentStore>,
        clock: Arc<dyn Clock>,
        ids: IdGenerator,
        playbooks: Playbooks,
        triggers: Arc<dyn TriggerDocuments>,
        quotas: Quotas,
    ) -> Self {
        Self { store, clock, ids, playbooks, triggers, quotas }
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
        if kind == SUBSCRIPTION_KIND {
            checked.diagnostics = self.check_subscription(tenant, &path, &content, force).await?;
        }
        if kind == SCHEDULE_KIND {
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
        self.triggers
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
        if kind == SUBSCRIPTION_KIND {
            let path = path.as_deref().unwrap_or_default();
            match self.check_subscription(tenant, path, content, true).await {
                Ok(found) => diagnostics.extend(found),
                Err(RegisterError::Invalid(found)) => diagnostics.extend(found),
                Err(RegisterError::Store(error)) => return Err(error),
                Err(RegisterError::Quota(_)) => {}
            }
        }
        if kind == SCHEDULE_KIND {
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
            let others = self.triggers.shared_listeners(tenant, path, ingress.listener()).await;
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
        self.triggers.sync_document(tenant, path, None).await?;
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
        self.triggers.sync_document(tenant, path, None).await?;
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

    /// Returns the compiled playbook of an entry.
    pub async fn compile(&self, entry: CatalogEntry) -> Result<Arc<Playbook>, PlaybookError> {
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
