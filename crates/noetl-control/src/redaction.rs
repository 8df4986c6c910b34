//! Secrets found by value in whatever workers and clients say, before anything is decided on it.
//!
//! What was handed out in this process is known by value: the secret fields of credentials, and
//! tokens made from them. Where such a value turns up, also in base64, URL-encoded or as JSON
//! writes it, a mark takes its place: `«secret:alias.field»`. Nothing is guessed from the name of a
//! key or the look of a text, so other data stays as it is, byte for byte. Values of less than
//! [`LENGTH_MIN`] bytes are not looked for: they would turn up by chance.
//!
//! A worker turns marks back into values for its tools. So that nobody gets a secret by writing its
//! mark into data, a text that comes in with the beginning of a mark loses it ([`unmark`]).

mod fields;
mod forms;
mod marks;
pub mod reveal;
mod secrets;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use noetl_model::{Failure, Map, Tenant, Value};

use crate::local::Ended;

pub use fields::{LENGTH_MIN, short_fields};
pub use marks::{Mark, mark, marks_in, unmark, unmark_failure};
pub use secrets::Secrets;

/// What was handed out in this process, by tenant. Cheap to clone; clones share what they know.
#[derive(Clone, Default)]
pub struct Redaction {
    known: Arc<Known>,
}

#[derive(Default)]
struct Known {
    /// Whether anything was noted: most processes pass most values without a look.
    any: AtomicBool,
    tenants: Mutex<HashMap<Tenant, Arc<Secrets>>>,
}

impl Redaction {
    /// Notes what was handed out under an alias.
    pub fn note(&self, tenant: &Tenant, alias: &str, data: &Value) {
        let mut tenants = self.tenants();
        let secrets = tenants.entry(tenant.clone()).or_default();
        if !secrets.has(alias, data) {
            Arc::make_mut(secrets).note(alias, data);
        }
        if !secrets.is_empty() {
            self.known.any.store(true, Ordering::Release);
        }
    }

    /// Whether nothing was handed out yet.
    pub fn is_empty(&self) -> bool {
        !self.known.any.load(Ordering::Acquire)
    }

    /// Puts marks in the place of secrets.
    pub fn value(&self, tenant: &Tenant, value: &mut Value) {
        if let Some(secrets) = self.of(tenant) {
            secrets.redact(value);
        }
    }

    /// The same in named values.
    pub fn map(&self, tenant: &Tenant, map: &mut Map) {
        if let Some(secrets) = self.of(tenant) {
            secrets.redact_map(map);
        }
    }

    /// The same in a failure.
    pub fn failure(&self, tenant: &Tenant, failure: &mut Failure) {
        if let Some(secrets) = self.of(tenant) {
            secrets.redact_failure(failure);
        }
    }

    /// The same in how a command ended.
    pub fn ended(&self, tenant: &Tenant, ended: &mut Ended) {
        let Some(secrets) = self.of(tenant) else { return };
        match &mut ended.outcome {
            Ok(data) => secrets.redact(data),
            Err(failure) => secrets.redact_failure(failure),
        }
        secrets.redact_map(&mut ended.ctx);
        secrets.redact_map(&mut ended.step);
    }

    fn of(&self, tenant: &Tenant) -> Option<Arc<Secrets>> {
        if self.is_empty() {
            return None;
        }
        // Looked through without the lock: a result may be large.
        self.tenants().get(tenant).cloned()
    }

    fn tenants(&self) -> MutexGuard<'_, HashMap<Tenant, Arc<Secrets>>> {
        self.known.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
