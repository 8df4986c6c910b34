//! Redacts secrets by value in reports of workers and clients, before the engine sees them.
//!
//! The secret fields of stored credentials, and of tokens derived from them, are known. A
//! placeholder, `«secret:alias.field»`, replaces each occurrence of such a value, also URL-encoded,
//! in base64, or escaped for JSON or HTML. Nothing is guessed from the name of a key or the shape
//! of a text, so other data is unchanged, byte for byte. Values of less than [`LENGTH_MIN`] bytes
//! are not redacted, because they would match by chance.
//!
//! In reports about commands, placeholders can resolve. In all other text
//! they never do.

mod fields;
mod forms;
pub mod reveal;
mod secrets;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use noetl_model::{Failure, Map, Tenant, Value};

use crate::outcome::CommandOutcome;

pub use fields::{LENGTH_MIN, secret_names, short_fields};
pub use secrets::{Mint, SecretTable};

/// Known secrets by tenant. Cheap to clone; clones share the secrets.
#[derive(Clone, Default)]
pub struct Redaction {
    known: Arc<RedactionState>,
}

#[derive(Default)]
struct RedactionState {
    /// Whether any secret is known. Without one, values are not searched.
    any: AtomicBool,
    tenants: Mutex<HashMap<Tenant, Arc<SecretTable>>>,
}

impl Redaction {
    /// Adds the secret fields of a credential of this type. Without a type, every field is secret.
    pub fn note(&self, tenant: &Tenant, alias: &str, kind: Option<&str>, data: &Value) {
        let mut tenants = self.tenants();
        let secrets = tenants.entry(tenant.clone()).or_default();
        if !secrets.is_newest(alias, kind, data) {
            Arc::make_mut(secrets).note(alias, kind, data);
        }
        if !secrets.is_empty() {
            self.known.any.store(true, Ordering::Release);
        }
    }

    /// Returns `true` if no secret is known.
    pub fn is_empty(&self) -> bool {
        !self.known.any.load(Ordering::Acquire)
    }

    /// Replaces secrets in a value by placeholders that never resolve.
    pub fn value(&self, tenant: &Tenant, value: &mut Value) {
        if let Some(secrets) = self.secrets_of(tenant) {
            secrets.redact(value, None);
        }
    }

    /// Replaces secrets in a map by placeholders that never resolve.
    pub fn map(&self, tenant: &Tenant, map: &mut Map) {
        if let Some(secrets) = self.secrets_of(tenant) {
            secrets.redact_map(map, None);
        }
    }

    /// Replaces secrets in a failure by placeholders that never resolve.
    pub fn failure(&self, tenant: &Tenant, failure: &mut Failure) {
        if let Some(secrets) = self.secrets_of(tenant) {
            secrets.redact_failure(failure, None);
        }
    }

    /// Replaces secrets in a value by placeholders from `mint`, or by ones that never resolve if it
    /// returns none.
    pub fn value_with(&self, tenant: &Tenant, value: &mut Value, mint: Mint<'_>) {
        if let Some(secrets) = self.secrets_of(tenant) {
            secrets.redact(value, mint);
        }
    }

    /// Replaces secrets in the outcome of a command by placeholders from `mint`, or by ones that
    /// never resolve if it returns none.
    pub fn ended(&self, tenant: &Tenant, ended: &mut CommandOutcome, mint: Mint<'_>) {
        let Some(secrets) = self.secrets_of(tenant) else { return };
        match &mut ended.outcome {
            Ok(data) => secrets.redact(data, mint),
            Err(failure) => secrets.redact_failure(failure, mint),
        }
        secrets.redact_map(&mut ended.ctx, mint);
        secrets.redact_map(&mut ended.step, mint);
    }

    fn secrets_of(&self, tenant: &Tenant) -> Option<Arc<SecretTable>> {
        if self.is_empty() {
            return None;
        }
        // Searched without holding the lock, because a result may be large.
        self.tenants().get(tenant).cloned()
    }

    fn tenants(&self) -> MutexGuard<'_, HashMap<Tenant, Arc<SecretTable>>> {
        self.known.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
