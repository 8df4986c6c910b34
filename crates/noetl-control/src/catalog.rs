//! Playbooks by path and version: registered as they are sent, compiled once per version.

use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use noetl_model::{CatalogId, Clock, Tenant};
use noetl_playbook::subscription::SHARED_LISTENER;
use noetl_playbook::{
    Checked, CheckedSubscription, Diagnostic, Playbook, Severity, check, check_subscription,
    describe,
};
use noetl_store::{CatalogEntry, NewEntry, Store, StoreError};

use crate::ids::Ids;
use crate::listeners::Listeners;
use crate::subscriptions;

/// Compiled playbooks kept in memory. A large one takes a few megabytes.
const COMPILED_MAX: usize = 256;

/// Kinds of documents the catalog keeps. Playbooks and subscriptions are checked; the others are kept
/// as they are.
const KINDS: [&str; 6] = ["playbook", "subscription", "agent", "mcp", "credential", "memory"];

/// Why a document was not registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// It has errors; nothing was registered.
    #[error("the document has errors")]
    Invalid(Vec<Diagnostic>),
    /// The store did not take it.
    #[error("the store did not take the document")]
    Store(#[source] StoreError),
}

/// Why a playbook cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlaybookError {
    /// There is no such entry.
    #[error("there is no such catalog entry")]
    NotFound,
    /// It is not a playbook, or has errors.
    #[error("the playbook has errors")]
    Invalid(Vec<Diagnostic>),
    /// The store did not answer.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
}

/// Compiled playbooks by catalog entry. Cheap to clone.
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

/// Checks a document off the runtime's threads: one of 100 000 steps takes a second or two.
async fn check_aside(content: String) -> Checked {
    let checked = tokio::task::spawn_blocking(move || check(&content)).await;
    checked.unwrap_or_else(|stopped| match stopped.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        // Only a runtime that shuts down drops the task unrun; nobody waits for the answer then.
        Err(_) => Checked { playbook: None, diagnostics: Vec::new() },
    })
}

fn no_path() -> Diagnostic {
    let message = "Missing 'path' or 'name' in metadata".to_owned();
    of_document("E003", "metadata", message, "write 'metadata: {name: my_playbook}'".to_owned())
}

fn unknown_kind(kind: &str) -> Diagnostic {
    let help = format!("write one of: {}", KINDS.join(", "));
    of_document("E002", "kind", format!("the catalog keeps no documents of kind '{kind}'"), help)
}

/// A gateway knows a listener by its name alone, and asks for the first that has it.
fn shared_listener(name: &str, others: &[String]) -> Diagnostic {
    let others: Vec<String> = others.iter().map(|other| format!("'{other}'")).collect();
    let message = format!("listener '{name}' is also that of {}", others.join(", "));
    let help =
        "let 'gateway_path' end in a name of its own; the first by path is served".to_owned();
    let found = of_document(SHARED_LISTENER, "spec.ingress.gateway_path", message, help);
    Diagnostic { severity: Severity::Warning, ..found }
}

/// A finding about a document that is known only by what it describes itself as.
fn of_document(code: &'static str, path: &str, message: String, help: String) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        code,
        line: 1,
        column: 1,
        path: path.to_owned(),
        message,
        help: Some(help),
    }
}

/// The catalog service. Cheap to clone.
#[derive(Clone)]
pub struct Catalog {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Ids,
    playbooks: Playbooks,
    listeners: Listeners,
}

impl Catalog {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ids: Ids,
        playbooks: Playbooks,
        listeners: Listeners,
    ) -> Self {
        Self { store, clock, ids, playbooks, listeners }
    }

    /// Registers a document as the next version of its path, with the warnings it deserves. A
    /// playbook or subscription with errors is refused unless `force` is given.
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
        let mut checked = Checked { playbook: None, diagnostics: Vec::new() };
        if kind == "playbook" {
            checked = check_aside(content.clone()).await;
            if !force && checked.playbook.is_none() {
                return Err(RegisterError::Invalid(checked.diagnostics));
            }
        }
        if kind == subscriptions::KIND {
            checked.diagnostics = self.check_subscription(tenant, &path, &content, force).await?;
        }
        self.ids.leased().map_err(RegisterError::Store)?;
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
        Ok((entry, checked.diagnostics))
    }

    /// What there is to say about a subscription; refused when it has errors.
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
            // Only a runtime that shuts down drops the task unrun; nobody waits for the answer then.
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

    /// The entry with this id.
    pub async fn entry(
        &self,
        tenant: &Tenant,
        id: CatalogId,
    ) -> Result<Option<CatalogEntry>, StoreError> {
        self.store.entry(tenant, id).await
    }

    /// The entry at this path: the given version, or the newest.
    pub async fn entry_at(
        &self,
        tenant: &Tenant,
        path: &str,
        version: Option<u32>,
    ) -> Result<Option<CatalogEntry>, StoreError> {
        self.store.entry_at(tenant, path, version).await
    }

    /// Every version of every entry, newest first; only of one kind when given, whatever its case.
    pub async fn entries(
        &self,
        tenant: &Tenant,
        kind: Option<&str>,
    ) -> Result<Vec<CatalogEntry>, StoreError> {
        let kind = kind.map(str::to_lowercase);
        self.store.entries(tenant, kind.as_deref()).await
    }

    pub(crate) async fn compile(
        &self,
        entry: CatalogEntry,
    ) -> Result<Arc<Playbook>, PlaybookError> {
        self.playbooks.compile(entry).await
    }
}
