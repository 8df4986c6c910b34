//! Limits each tenant's use of the control plane.
//!
//! Usage is counted in the store, so all processes of a database see the same numbers; concurrent
//! requests may exceed a quota slightly. Child executions and scheduled runs count but are not
//! rejected, because their parent or schedule was admitted before.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use noetl_model::{Tenant, Timestamp};
use noetl_store::{CatalogStore, ExecutionFilter, ExecutionStatus, ExecutionStore, StoreError};

use crate::rate_limit::RateLimiter;

/// Quota of one tenant. `None` means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Quota {
    /// Maximum number of running executions.
    pub executions: Option<u64>,
    /// Maximum number of starts per second.
    pub starts: Option<f64>,
    /// Maximum number of document versions in the catalog.
    pub documents: Option<u64>,
    /// Maximum total size of these documents, in bytes.
    pub bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct QuotaSettings {
    every: Quota,
    /// Quotas by tenant name, replacing the default.
    named: BTreeMap<String, Quota>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct QuotaSettingsError(String);

impl FromStr for QuotaSettings {
    type Err = QuotaSettingsError;

    /// Parses `executions=100 starts=5; acme: executions=10`. Semicolons separate tenants; the part
    /// without a name is the default for tenants that are not named.
    fn from_str(text: &str) -> Result<Self, QuotaSettingsError> {
        let mut settings = Self::default();
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            match part.split_once(':') {
                None => settings.every = quota(part)?,
                Some((tenant, rest)) => {
                    let known = settings.named.insert(tenant.trim().to_owned(), quota(rest)?);
                    if tenant.trim().is_empty() || known.is_some() {
                        let message = format!("'{part}' names no tenant, or one for a second time");
                        return Err(QuotaSettingsError(message));
                    }
                }
            }
        }
        Ok(settings)
    }
}

fn quota(text: &str) -> Result<Quota, QuotaSettingsError> {
    let mut quota = Quota::default();
    for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
        let wrong = || {
            QuotaSettingsError(format!(
                "'{word}' is none of executions=N, starts=N (a second), documents=N, bytes=N"
            ))
        };
        let (name, number) = word.split_once('=').ok_or_else(wrong)?;
        let whole = || number.parse::<u64>().map_err(|_| wrong());
        match name {
            "executions" => quota.executions = Some(whole()?),
            "documents" => quota.documents = Some(whole()?),
            "bytes" => quota.bytes = Some(whole()?),
            "starts" => {
                let rate = number.parse::<f64>().ok().filter(|rate| *rate > 0.0);
                quota.starts = Some(rate.filter(|rate| rate.is_finite()).ok_or_else(wrong)?);
            }
            _ => return Err(wrong()),
        }
    }
    Ok(quota)
}

/// A request would exceed a tenant's quota.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct QuotaExceeded {
    message: String,
    /// Time after which to retry.
    pub after: Duration,
}

/// Retry delay for a quota that is freed when executions end or documents are deleted.
const LATER: Duration = Duration::from_secs(10);

/// Enforces quotas. Cheap to clone.
#[derive(Clone, Default)]
pub struct Quotas {
    settings: Arc<QuotaSettings>,
    starts: Arc<RateLimiter<Tenant>>,
}

/// Reasons a request is not admitted.
#[derive(Debug, thiserror::Error)]
pub enum QuotaError {
    #[error(transparent)]
    Over(QuotaExceeded),
    #[error(transparent)]
    Store(StoreError),
}

impl Quotas {
    pub fn new(settings: QuotaSettings) -> Self {
        Self { settings: Arc::new(settings), starts: Arc::default() }
    }

    fn quota_of(&self, tenant: &Tenant) -> Quota {
        *self.settings.named.get(tenant.as_str()).unwrap_or(&self.settings.every)
    }

    /// Checks that a tenant may start another execution, and counts the start.
    pub async fn check_start(
        &self,
        store: &dyn ExecutionStore,
        tenant: &Tenant,
        now: Timestamp,
    ) -> Result<(), QuotaError> {
        let quota = self.quota_of(tenant);
        if let Some(most) = quota.executions
            && is_reached(store, tenant, most).await.map_err(QuotaError::Store)?
        {
            let message = format!(
                "tenant '{}' has {most} running executions, which is its quota",
                tenant.as_str()
            );
            return Err(QuotaError::Over(QuotaExceeded { message, after: LATER }));
        }
        if let Some(rate) = quota.starts {
            self.starts.take(tenant.clone(), rate, now).map_err(|after| {
                let message =
                    format!("tenant '{}' may start {rate} executions a second", tenant.as_str());
                QuotaError::Over(QuotaExceeded { message, after })
            })?;
        }
        Ok(())
    }

    /// Checks that a tenant may store another document of this size.
    pub async fn check_document(
        &self,
        store: &dyn CatalogStore,
        tenant: &Tenant,
        bytes: u64,
    ) -> Result<(), QuotaError> {
        let quota = self.quota_of(tenant);
        if quota.documents.is_none() && quota.bytes.is_none() {
            return Ok(());
        }
        let kept = store.catalog_size(tenant).await.map_err(QuotaError::Store)?;
        let tenant = tenant.as_str();
        let over = |message| Err(QuotaError::Over(QuotaExceeded { message, after: LATER }));
        match (quota.documents, quota.bytes) {
            (Some(most), _) if kept.documents >= most => over(format!(
                "tenant '{tenant}' has {} versions of documents and may have {most}",
                kept.documents
            )),
            (_, Some(most)) if kept.bytes.saturating_add(bytes) > most => over(format!(
                "the documents of tenant '{tenant}' have {} bytes, this one {bytes}, and together \
                 they may have {most}",
                kept.bytes
            )),
            _ => Ok(()),
        }
    }
}

/// Returns `true` if a tenant has at least `most` running executions. Reads that many index
/// entries.
async fn is_reached(
    store: &dyn ExecutionStore,
    tenant: &Tenant,
    most: u64,
) -> Result<bool, StoreError> {
    let Some(others) = most.checked_sub(1) else { return Ok(true) };
    let filter = ExecutionFilter {
        status: Some(ExecutionStatus::Running),
        offset: usize::try_from(others).unwrap_or(usize::MAX),
        limit: 1,
        ..ExecutionFilter::default()
    };
    Ok(!store.executions(tenant, &filter).await?.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_read_and_nonsense_is_named() {
        let read = |text: &str| text.parse::<QuotaSettings>();
        let settings = read("executions=100, starts=2.5; acme: documents=3 bytes=9").unwrap();
        let quotas = Quotas::new(settings);
        let every = Quota { executions: Some(100), starts: Some(2.5), ..Quota::default() };
        let acme = Quota { documents: Some(3), bytes: Some(9), ..Quota::default() };
        assert_eq!(quotas.quota_of(&Tenant::default()), every);
        assert_eq!(quotas.quota_of(&Tenant::new("acme")), acme);
        assert_eq!(read(""), Ok(QuotaSettings::default()));
        for (text, named) in [
            ("executions", "executions"),
            ("executions=-1", "executions=-1"),
            ("starts=0", "starts=0"),
            ("starts=inf", "starts=inf"),
            ("cows=1", "cows=1"),
            ("acme: cows=1", "cows=1"),
            (": executions=1", "names no tenant"),
            ("a: executions=1; a: executions=2", "second time"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
