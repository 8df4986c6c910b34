//! Restricts a worker's token to commands of its tenant and pool, and to the credentials they name.
//!
//! A worker that holds the lease of a command may read the credentials that the command names in
//! `auth` or in its keychain, and resolve the placeholders of its execution. A worker that runs
//! subscriptions may read the credentials that the documents of live subscriptions name. Workers
//! whose tokens have the same tenant and pool are not distinguished, because workers choose their
//! own names.

mod named;

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use noetl_model::event::CommandSpec;
use noetl_model::{CatalogId, CommandId, ExecutionId, Fact, Seq, Tenant};
use noetl_playbook::check_subscription;
use noetl_store::{CommandRow, SecretsStore, StoreError, SubscriptionState};

use self::named::NamedCredentials;
use crate::grants::{Grants, covers};

/// Maximum number of commands whose owners are cached: several for every slot of many workers.
const CACHED: NonZeroUsize = NonZeroUsize::new(8192).expect("not zero");

/// Tenant and pool that a worker's token is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerBinding {
    /// Tenant whose commands the worker may run.
    pub tenant: Tenant,
    /// Pool whose commands the worker may run; any pool of the tenant if `None`.
    pub pool: Option<Arc<str>>,
}

impl WorkerBinding {
    fn takes(&self, pool: &str) -> bool {
        self.pool.as_deref().is_none_or(|own| own == pool)
    }
}

/// Command for which a worker requests a credential.
#[derive(Debug, Clone, Copy)]
pub struct CredentialHolder<'a> {
    /// Execution of the command; `None` for a subscription runtime.
    pub execution: Option<ExecutionId>,
    /// Name under which the worker claimed the command, if the request contains it.
    pub worker: Option<&'a str>,
}

/// Tenant and pool of each command.
type Owners = LruCache<CommandId, (Tenant, Arc<str>)>;

/// Decides the access of a worker's token. Cheap to clone.
#[derive(Clone)]
pub struct WorkerAccess {
    store: Arc<dyn SecretsStore>,
    grants: Grants,
    /// Tenant and pool of commands. Neither changes.
    owners: Arc<Mutex<Owners>>,
}

impl WorkerAccess {
    pub(crate) fn new(store: Arc<dyn SecretsStore>, grants: &Grants) -> Self {
        let grants = grants.clone();
        Self { store, grants, owners: Arc::new(Mutex::new(LruCache::new(CACHED))) }
    }

    /// Returns `true` if the token may claim a command and report about it. Returns `false` for a
    /// command that does not exist.
    pub async fn owns(
        &self,
        binding: &WorkerBinding,
        command: CommandId,
    ) -> Result<bool, StoreError> {
        if let Some((tenant, pool)) = self.cached().get(&command) {
            return Ok(*tenant == binding.tenant && binding.takes(pool));
        }
        let Some(row) = self.store.command(command).await? else { return Ok(false) };
        let Some(tenant) = self.store.tenant_of(row.execution).await? else { return Ok(false) };
        let is_own = tenant == binding.tenant && binding.takes(&row.pool);
        self.cached().put(command, (tenant, row.pool));
        Ok(is_own)
    }

    /// Returns `true` if the token's workers hold a lease of a command of this execution.
    pub async fn works_on(
        &self,
        binding: &WorkerBinding,
        execution: ExecutionId,
    ) -> Result<bool, StoreError> {
        Ok(!self.held(binding, execution, None).await?.is_empty())
    }

    /// Returns `true` if the token's workers hold a lease of a command of an execution of this
    /// catalog entry.
    pub async fn works_on_entry(
        &self,
        binding: &WorkerBinding,
        execution: ExecutionId,
        catalog: CatalogId,
    ) -> Result<bool, StoreError> {
        let row = self.store.execution(&binding.tenant, execution).await?;
        let is_of_entry = row.is_some_and(|row| row.catalog == catalog);
        Ok(is_of_entry && self.works_on(binding, execution).await?)
    }

    /// Returns `true` if a leased command, or a live subscription, names the credential.
    pub async fn may_read(
        &self,
        binding: &WorkerBinding,
        holder: CredentialHolder<'_>,
        credential: &str,
    ) -> Result<bool, StoreError> {
        // Subscription runtimes of published workers send execution 0.
        let Some(execution) = holder.execution.filter(|id| id.get() > 0) else {
            return self.subscribes_with(binding, credential).await;
        };
        for row in self.held(binding, execution, holder.worker).await? {
            let Some(issued) = self.issued(&row).await? else { continue };
            if NamedCredentials::in_command(&issued).matches(credential) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the commands of an execution leased to workers with the token's tenant and pool;
    /// with `worker`, only those of that worker.
    async fn held(
        &self,
        binding: &WorkerBinding,
        execution: ExecutionId,
        worker: Option<&str>,
    ) -> Result<Vec<CommandRow>, StoreError> {
        if self.store.tenant_of(execution).await?.as_ref() != Some(&binding.tenant) {
            return Ok(Vec::new());
        }
        let mut rows = self.store.held_of(execution).await?;
        rows.retain(|row| {
            let is_worker_s = worker.is_none_or(|worker| row.worker.as_deref() == Some(worker));
            binding.takes(&row.pool) && is_worker_s
        });
        Ok(rows)
    }

    async fn issued(&self, row: &CommandRow) -> Result<Option<Arc<CommandSpec>>, StoreError> {
        let before = Seq(row.issued.0.saturating_sub(1));
        let events = self.store.read(row.execution, before, 1).await?;
        Ok(events.into_iter().next().and_then(|event| match event.fact {
            Fact::CommandIssued(issued) => Some(issued),
            _ => None,
        }))
    }

    /// Returns `true` if a subscription that is not deactivated names the credential. A token bound
    /// to a pool runs steps but no subscriptions.
    async fn subscribes_with(
        &self,
        binding: &WorkerBinding,
        credential: &str,
    ) -> Result<bool, StoreError> {
        if binding.pool.is_some() {
            return Ok(false);
        }
        let granted = self.grants.of_credential(&binding.tenant, credential).await?;
        for row in self.store.subscriptions(&binding.tenant).await? {
            if granted.as_ref().is_some_and(|prefixes| !covers(prefixes, &row.path)) {
                continue;
            }
            if row.state == SubscriptionState::Deactivated {
                continue;
            }
            let Some(entry) = self.store.entry(&binding.tenant, row.catalog).await? else {
                continue;
            };
            let Some(document) = check_subscription(&entry.content).subscription else { continue };
            let spool = document.spool.and_then(|spool| spool.credential);
            if [document.auth, spool].iter().flatten().any(|name| name == credential) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn cached(&self) -> MutexGuard<'_, Owners> {
        // Each critical section is one call that cannot panic midway.
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
