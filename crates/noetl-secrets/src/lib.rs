//! Secrets and access: credentials, the keychain of playbooks, placeholders, sealing and its
//! rotation, access tokens, grants, and the audit of all of these.

mod administration;
mod audit;
mod binding;
mod credential_error;
mod credentials;
mod grants;
mod keychain;
mod placeholders;
mod rotation;
mod sealing;
mod service;
mod tokens;
mod worker_access;

pub use administration::{Administration, DirectTokens};
pub use audit::{AuditCheck, SecretAuditLog, SecretOutcome, SecretRequest, verify_audit};
pub use binding::{Resealed, verify_sealed};
pub use credential_error::CredentialError;
pub use credentials::{CredentialRequest, Credentials, LocalSecrets, OpenCredential};
pub use grants::{GrantError, GrantRequest, Grants, covers};
pub use keychain::{KeychainKey, KeychainLookup, KeychainRequest, KeychainService, RevealedSecret};
pub use placeholders::{Minter, Placeholders};
pub use rotation::{KeyRotation, KeyStatus, KeyUsage, Rotated};
pub use sealing::{
    EncryptionKey, KEY_VARIABLE, KEY_VERSION_VARIABLE, KeyError, PREVIOUS_KEY_VARIABLE, SealError,
};
pub use service::{Options, Secrets};
pub use tokens::{
    BELIEVED as TOKEN_BELIEVED, Role, TokenError, TokenHolder, TokenRequest, Tokens, UnknownRole,
    random_text,
};
pub use worker_access::{CredentialHolder, WorkerAccess, WorkerBinding};
