//! Worker side of sandboxed steps: warm hosts by tenant, and the steps that run in them.
//!
//! A host is a process confined to the configured isolation ([`crate::step_host`]). It runs one
//! step at a time. An idle host is reused for the next step of the same tenant, never for another.
//! Dropping a host ends all its processes.

mod host;
mod pool;
mod probe;
mod tools;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use noetl_model::{Failure, FailureKind, Tenant};

use crate::isolation::{Level, TenantUsers, User};
use crate::own::FileGuard;
use crate::{IsolationError, Options};

pub(crate) use crate::host_protocol::wire::Program;
pub(crate) use host::{Host, HostedStep, Pipes};
pub(crate) use pool::Pool;
pub(crate) use tools::ToolRun;

/// Sandbox of a worker's tools.
#[derive(Debug)]
pub(crate) struct Sandbox {
    options: Arc<Options>,
    users: TenantUsers,
    idle: Pool<Host>,
    /// First tenant that this worker served.
    tenant: Mutex<Option<Tenant>>,
}

impl Sandbox {
    pub(crate) fn new(options: Arc<Options>) -> Self {
        Self {
            options,
            users: TenantUsers::default(),
            idle: Pool::default(),
            tenant: Mutex::default(),
        }
    }

    pub(crate) fn options(&self) -> &Arc<Options> {
        &self.options
    }

    /// Returns `true` if steps run in hosts.
    pub(crate) fn is_on(&self) -> bool {
        !self.options.isolation.is_off()
    }

    /// Returns the file checks for a tenant's steps, based on the current files.
    pub(crate) fn guard(&self, tenant: &Tenant) -> FileGuard {
        FileGuard::new(&self.options.own, self.options.paths.list_of(tenant))
    }

    /// Rejects steps of a second tenant if the isolation level doesn't separate tenants.
    pub(crate) fn admit(&self, tenant: &Tenant) -> Result<(), Failure> {
        let level = self.options.isolation.level;
        if level.keeps_tenants_apart() || self.options.share_tenants {
            return Ok(());
        }
        let mut first = self.tenant.lock().unwrap_or_else(PoisonError::into_inner);
        let first = first.get_or_insert_with(|| tenant.clone());
        if first == tenant {
            return Ok(());
        }
        Err(Failure::new(
            FailureKind::Config,
            format!(
                "this worker isolates steps at level {level}, which does not keep tenants apart, \
                 and serves another tenant; give each tenant a worker, or raise the level \
                 (--step-isolation 2), or accept it (--step-share-tenants)"
            ),
        ))
    }

    /// Returns a host for a step of this tenant: an idle one, or a new one.
    pub(crate) async fn acquire(&self, tenant: &Tenant) -> Result<Host, Failure> {
        match self.idle.take(tenant, |host| host.is_current(&self.options)) {
            Some(host) => Ok(host),
            None => self.start(tenant).await,
        }
    }

    /// Starts a host for steps of this tenant.
    pub(crate) async fn start(&self, tenant: &Tenant) -> Result<Host, Failure> {
        self.admit(tenant)?;
        let user = self.user(tenant)?;
        Host::start(&self.options, user, self.options.paths.list_of(tenant)).await.map_err(
            |error| {
                let message = format!("the step's sandbox could not be started: {}", error.message);
                let mut failure = Failure::new(FailureKind::Unknown, message);
                // The probe at startup succeeded, so the machine lacks a resource temporarily.
                failure.retryable = true;
                failure
            },
        )
    }

    /// Returns a host to the pool after its step ended, for the tenant's next step.
    pub(crate) fn release(&self, tenant: &Tenant, host: Host) {
        self.idle.put(tenant, host);
    }

    fn user(&self, tenant: &Tenant) -> Result<Option<User>, Failure> {
        let isolation = &self.options.isolation;
        let Some(range) = isolation.users else { return Ok(isolation.user) };
        match self.users.user(range, tenant) {
            Some(user) => Ok(Some(user)),
            None => Err(Failure::new(
                FailureKind::Config,
                "every user of --step-users is another tenant's; give it a larger range",
            )),
        }
    }
}

impl Options {
    /// Starts a host once, to detect unsupported settings before the first step.
    pub async fn prove_isolation(&self) -> Result<(), IsolationError> {
        probe::prove(self).await
    }

    /// Selects the highest level that this machine supports, at least `least`.
    pub async fn choose_isolation(&mut self, least: Level) -> Result<(), IsolationError> {
        probe::choose(self, least).await
    }
}

/// Returns the base directory for relative paths of a tool.
pub(crate) fn worker_directory(fallback: &Path) -> std::path::PathBuf {
    std::env::current_dir().unwrap_or_else(|_| fallback.to_owned())
}
