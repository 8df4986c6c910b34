//! Grants: paths on which callers may act, and credentials that playbooks may use.
//!
//! Without a path grant for a role, callers with that role may act on every path of the tenant.
//! Without a grant for a credential, every playbook may use it. After the first grant, callers with
//! that role need a grant that covers the path, and playbooks need a grant for the credential that
//! covers their own path, regardless of the caller that starts them. Admins are never limited.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use noetl_model::{ExecutionId, Tenant};
use noetl_store::{Digest, Grant, GrantKind, NewGrant, SecretsStore, StoreError};

use crate::tokens::{Role, random_text};

/// Time for which a tenant's grants are cached. A grant removed by another server stays effective
/// for this long.
const CACHED_FOR: Duration = Duration::from_secs(5);

/// Tenants whose grants are cached. At the limit, the whole cache is cleared.
const TENANTS_MAX: usize = 1024;

/// Length limit of a prefix and of the name of a credential or caller, in characters.
const TEXT_MAX: usize = 500;

/// Request to create a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantRequest {
    /// Lets callers with a role act below a prefix.
    Path {
        /// Role to limit: `author` or `operator`. Other roles fail with [`GrantError::Role`].
        role: Role,
        /// Caller, as named in the audit. `None` applies to every caller with the role.
        subject: Option<String>,
        /// Prefix of catalog paths. Empty covers all.
        prefix: String,
    },
    /// Lets playbooks below a prefix use a credential.
    Credential {
        /// Name of the credential. It need not exist yet.
        credential: String,
        /// Prefix of catalog paths. Empty covers all.
        prefix: String,
    },
}

/// Errors of creating and removing grants.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// The role cannot be limited to paths.
    #[error("a path grant is for role author or operator, not {0}")]
    Role(Role),
    /// A value is empty, too long, or contains a NUL character.
    #[error("{0} of a grant has at most {TEXT_MAX} characters and no NUL, and names are not empty")]
    Text(&'static str),
    /// The audit is required, and the change could not be recorded.
    #[error("failed to record the change in the audit, so nothing was changed")]
    Unrecorded(#[source] StoreError),
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}

type Cached = HashMap<Tenant, (Arc<Vec<Grant>>, Instant)>;

/// Grant service. Cheap to clone.
#[derive(Clone)]
pub struct Grants {
    store: Arc<dyn SecretsStore>,
    cached: Arc<Mutex<Cached>>,
}

impl fmt::Debug for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Grants")
    }
}

impl Grants {
    pub(crate) fn new(store: Arc<dyn SecretsStore>) -> Self {
        Self { store, cached: Arc::default() }
    }

    /// Validates a request and assigns it an ID.
    pub(crate) fn minted(request: GrantRequest) -> Result<NewGrant, GrantError> {
        let is_text = |text: &str| text.chars().count() <= TEXT_MAX && !text.contains('\0');
        let is_name = |text: &str| !text.trim().is_empty() && is_text(text);
        let id = Digest::of_bytes(random_text().as_bytes()).to_string()[..16].to_owned();
        let (kind, target, subject, prefix) = match request {
            GrantRequest::Path { role, subject, prefix } => {
                if !matches!(role, Role::Author | Role::Operator) {
                    return Err(GrantError::Role(role));
                }
                if subject.as_ref().is_some_and(|subject| !is_name(subject)) {
                    return Err(GrantError::Text("the caller"));
                }
                (GrantKind::Path, role.as_str().to_owned(), subject, prefix)
            }
            GrantRequest::Credential { credential, prefix } => {
                if !is_name(&credential) {
                    return Err(GrantError::Text("the credential"));
                }
                (GrantKind::Credential, credential, None, prefix)
            }
        };
        if !is_text(&prefix) {
            return Err(GrantError::Text("the prefix"));
        }
        let prefix = prefix.trim().trim_matches('/').to_owned();
        Ok(NewGrant { id, kind, target, subject, prefix })
    }

    pub(crate) async fn put(&self, tenant: &Tenant, new: NewGrant) -> Result<Grant, GrantError> {
        let kept = self.store.put_grant(tenant, new).await;
        self.lock().remove(tenant);
        kept.map_err(GrantError::Store)
    }

    pub(crate) async fn remove(&self, tenant: &Tenant, id: &str) -> Result<bool, StoreError> {
        let removed = self.store.remove_grant(tenant, id).await;
        self.lock().remove(tenant);
        removed
    }

    /// Returns a tenant's grants, oldest first.
    pub async fn list(&self, tenant: &Tenant) -> Result<Vec<Grant>, StoreError> {
        self.store.grants(tenant).await
    }

    /// Returns the prefixes to which a caller with a role is limited, or `None` if the role is not
    /// limited in this tenant.
    pub async fn prefixes(
        &self,
        tenant: &Tenant,
        role: Role,
        subject: &str,
    ) -> Result<Option<Vec<String>>, StoreError> {
        let grants = self.cached(tenant).await?;
        let of_role = |grant: &&Grant| {
            grant.kept.kind == GrantKind::Path && grant.kept.target == role.as_str()
        };
        if !grants.iter().any(|grant| of_role(&grant)) {
            return Ok(None);
        }
        let own = grants
            .iter()
            .filter(of_role)
            .filter(|grant| grant.kept.subject.as_deref().is_none_or(|granted| granted == subject));
        Ok(Some(own.map(|grant| grant.kept.prefix.clone()).collect()))
    }

    /// Returns the prefixes whose playbooks may use a credential, or `None` if all may.
    pub async fn of_credential(
        &self,
        tenant: &Tenant,
        credential: &str,
    ) -> Result<Option<Vec<String>>, StoreError> {
        let grants = self.cached(tenant).await?;
        let own = grants.iter().filter(|grant| {
            grant.kept.kind == GrantKind::Credential && grant.kept.target == credential
        });
        let prefixes: Vec<String> = own.map(|grant| grant.kept.prefix.clone()).collect();
        Ok((!prefixes.is_empty()).then_some(prefixes))
    }

    /// Returns the path of an execution's playbook if it needs a grant for the credential and has
    /// none. Requests without an execution, from admins and listeners, need no grant.
    pub(crate) async fn lacking(
        &self,
        tenant: &Tenant,
        credential: &str,
        execution: Option<ExecutionId>,
    ) -> Result<Option<String>, StoreError> {
        let granted = self.of_credential(tenant, credential).await?;
        let (Some(prefixes), Some(id)) = (granted, execution.filter(|id| id.get() > 0)) else {
            return Ok(None);
        };
        let row = self.store.execution(tenant, id).await?;
        let path = row.map_or_else(String::new, |row| row.path.to_string());
        Ok((!covers(&prefixes, &path)).then_some(path))
    }

    async fn cached(&self, tenant: &Tenant) -> Result<Arc<Vec<Grant>>, StoreError> {
        if let Some((grants, read)) = self.lock().get(tenant)
            && read.elapsed() < CACHED_FOR
        {
            return Ok(grants.clone());
        }
        let grants = Arc::new(self.store.grants(tenant).await?);
        let mut cached = self.lock();
        if cached.len() >= TENANTS_MAX {
            cached.clear();
        }
        cached.insert(tenant.clone(), (grants.clone(), Instant::now()));
        Ok(grants)
    }

    fn lock(&self) -> MutexGuard<'_, Cached> {
        // Every critical section is one call that cannot panic halfway.
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `true` if one of the prefixes covers a path, compared by whole segments.
pub fn covers(prefixes: &[String], path: &str) -> bool {
    let path = path.trim_matches('/');
    prefixes.iter().any(|prefix| {
        let rest = path.strip_prefix(prefix.as_str());
        prefix.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_covers_whole_segments_of_paths() {
        let prefixes = ["team-a".to_owned(), "shared/etl".to_owned()];
        for path in ["team-a", "team-a/x", "team-a/x/y", "shared/etl/z", "/team-a/x"] {
            assert!(covers(&prefixes, path), "{path}");
        }
        for path in ["team-ab/x", "team", "shared", "shared/other", "", "x/team-a"] {
            assert!(!covers(&prefixes, path), "{path}");
        }
        assert!(covers(&[String::new()], "anything") && !covers(&[], "anything"));
    }

    #[test]
    fn a_grant_that_limits_nothing_is_refused() {
        let path =
            |role, prefix: &str| GrantRequest::Path { role, subject: None, prefix: prefix.into() };
        for role in [Role::Admin, Role::Viewer, Role::Worker] {
            assert!(matches!(Grants::minted(path(role, "a")), Err(GrantError::Role(_))));
        }
        assert!(Grants::minted(path(Role::Author, &"x".repeat(501))).is_err());
        let unnamed = GrantRequest::Credential { credential: " ".into(), prefix: "a".into() };
        assert!(matches!(Grants::minted(unnamed), Err(GrantError::Text(_))));
        let kept = Grants::minted(path(Role::Author, "/team-a/")).expect("a grant");
        assert_eq!((&*kept.prefix, &*kept.target), ("team-a", "author"));
    }
}
