//! The services of this crate, opened together.

use std::sync::Arc;

use noetl_catalog::Playbooks;
use noetl_identity::IdGenerator;
use noetl_model::Clock;
use noetl_store::{SecretsStore, StoreError};
use noetl_work::Redaction;

use crate::audit::SecretAuditLog;
use crate::credentials::Credentials;
use crate::grants::Grants;
use crate::keychain::KeychainService;
use crate::placeholders::Placeholders;
use crate::rotation::KeyRotation;
use crate::sealing::EncryptionKey;
use crate::tokens::Tokens;
use crate::worker_access::WorkerAccess;

/// Settings of the services for secrets.
#[derive(Clone, Default)]
pub struct Options {
    /// Encryption key of credentials. Without it, credentials cannot be stored or read.
    pub encryption_key: Option<EncryptionKey>,
    /// Whether a secret is withheld if its use cannot be recorded. Default: `false`.
    pub audit_required: bool,
}

/// Services for secrets and access. Cheap to clone.
#[derive(Clone)]
pub struct Secrets {
    pub credentials: Credentials,
    /// Secrets by the names that playbooks give them.
    pub keychain: KeychainService,
    /// Audit log of secret use.
    pub audit: SecretAuditLog,
    /// Encryption key and its rotation.
    pub keys: KeyRotation,
    pub tokens: Tokens,
    /// Path permissions of callers, and credential permissions of playbooks.
    pub grants: Grants,
    pub worker_access: WorkerAccess,
    /// Texts that replace secrets in event logs.
    pub placeholders: Placeholders,
    /// Secrets that are redacted in reports.
    pub redaction: Redaction,
}

impl Secrets {
    /// Opens the services, and adds the stored secrets to `redaction`.
    pub async fn open(
        options: Options,
        store: Arc<dyn SecretsStore>,
        clock: &Arc<dyn Clock>,
        ids: &IdGenerator,
        playbooks: &Playbooks,
        redaction: Redaction,
    ) -> Result<Self, StoreError> {
        let grants = Grants::new(store.clone());
        let placeholders = Placeholders::new(store.clone(), options.encryption_key.clone());
        let audit = SecretAuditLog::new(store.clone(), ids.clone(), options.audit_required);
        let keys = KeyRotation::new(store.clone(), options.encryption_key.clone());
        let credentials = Credentials::new(
            store.clone(),
            ids.clone(),
            options.encryption_key,
            redaction.clone(),
            audit.clone(),
            placeholders.clone(),
            grants.clone(),
        );
        credentials.learn().await?;
        let keychain = KeychainService::new(
            store.clone(),
            clock.clone(),
            credentials.clone(),
            playbooks.clone(),
        );
        let worker_access = WorkerAccess::new(store.clone(), &grants);
        let tokens = Tokens::new(store, clock.clone());
        Ok(Self {
            credentials,
            keychain,
            audit,
            keys,
            tokens,
            grants,
            worker_access,
            placeholders,
            redaction,
        })
    }
}
