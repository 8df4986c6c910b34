//! Catalog of documents by path and version, compiled playbooks, and the quotas of tenants.

mod catalog;
mod playbooks;
mod quotas;
mod rate_limit;
mod triggers;

pub use catalog::{Catalog, Checkup, RegisterError, ReplaceError};
pub use playbooks::{PlaybookError, Playbooks};
pub use quotas::{Quota, QuotaError, QuotaExceeded, QuotaSettings, QuotaSettingsError, Quotas};
pub use rate_limit::{RateLimiter, TokenBucket};
pub use triggers::{SCHEDULE_KIND, SUBSCRIPTION_KIND, TriggerDocuments};
