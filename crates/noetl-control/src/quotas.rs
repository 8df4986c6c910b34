//! How much of the control plane one tenant may take up.
//!
//! Counted is what the store has, so all processes of a database see the same; what begins in the
//! same moment may come to a few more. What a running step calls and what a schedule starts is
//! counted and not refused: it was let in before.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use noetl_model::{Tenant, Timestamp};
use noetl_store::{ExecutionFilter, ExecutionStatus, Store, StoreError};

use crate::catalog::RegisterError;
use crate::rates::Rates;

/// What one tenant may have; as much as it likes where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Quota {
    /// Executions under way.
    pub executions: Option<u64>,
    /// Starts a second.
    pub starts: Option<f64>,
    /// Versions of documents.
    pub documents: Option<u64>,
    /// Bytes of these together.
    pub bytes: Option<u64>,
}

/// What each tenant may have.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QuotaSettings {
    every: Quota,
    /// Those of some, in place of the others'.
    named: BTreeMap<String, Quota>,
}

/// A text that says no quotas.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct QuotaSettingsError(String);

impl FromStr for QuotaSettings {
    type Err = QuotaSettingsError;

    /// Reads `executions=100 starts=5; acme: executions=10`: semicolons part tenants, and the part
    /// without a name is for all that have none of their own.
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

/// Something that would be more than a tenant may have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OverQuota {
    message: String,
    /// When to come again.
    pub after: Duration,
}

/// When to come again for what has to end or be removed first.
const LATER: Duration = Duration::from_secs(10);

/// Keeps tenants within what they may have. Cheap to clone.
#[derive(Clone, Default)]
pub struct Quotas {
    settings: Arc<QuotaSettings>,
    starts: Arc<Rates<Tenant>>,
}

/// Why something does not begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum QuotaError {
    #[error(transparent)]
    Over(OverQuota),
    #[error(transparent)]
    Store(StoreError),
}

impl From<QuotaError> for RegisterError {
    fn from(error: QuotaError) -> Self {
        match error {
            QuotaError::Over(over) => Self::Quota(over),
            QuotaError::Store(error) => Self::Store(error),
        }
    }
}

impl Quotas {
    pub(crate) fn new(settings: QuotaSettings) -> Self {
        Self { settings: Arc::new(settings), starts: Arc::default() }
    }

    fn of(&self, tenant: &Tenant) -> Quota {
        *self.settings.named.get(tenant.as_str()).unwrap_or(&self.settings.every)
    }

    /// Whether one more execution may begin.
    pub(crate) async fn start(
        &self,
        store: &dyn Store,
        tenant: &Tenant,
        now: Timestamp,
    ) -> Result<(), QuotaError> {
        let quota = self.of(tenant);
        if let Some(most) = quota.executions
            && is_reached(store, tenant, most).await.map_err(QuotaError::Store)?
        {
            let message = format!(
                "tenant '{}' has {most} executions under way, which is as many as it may have",
                tenant.as_str()
            );
            return Err(QuotaError::Over(OverQuota { message, after: LATER }));
        }
        if let Some(rate) = quota.starts {
            self.starts.take(tenant.clone(), rate, now).map_err(|after| {
                let message =
                    format!("tenant '{}' may start {rate} executions a second", tenant.as_str());
                QuotaError::Over(OverQuota { message, after })
            })?;
        }
        Ok(())
    }

    /// Whether one more document of so many bytes may be kept.
    pub(crate) async fn keep(
        &self,
        store: &dyn Store,
        tenant: &Tenant,
        bytes: u64,
    ) -> Result<(), QuotaError> {
        let quota = self.of(tenant);
        if quota.documents.is_none() && quota.bytes.is_none() {
            return Ok(());
        }
        let kept = store.catalog_size(tenant).await.map_err(QuotaError::Store)?;
        let tenant = tenant.as_str();
        let over = |message| Err(QuotaError::Over(OverQuota { message, after: LATER }));
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

/// Whether a tenant has so many executions under way. Reads that many entries of an index.
async fn is_reached(store: &dyn Store, tenant: &Tenant, most: u64) -> Result<bool, StoreError> {
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
        assert_eq!(quotas.of(&Tenant::default()), every);
        assert_eq!(quotas.of(&Tenant::new("acme")), acme);
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
