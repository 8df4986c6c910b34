//! Credentials, the audit of secret requests, and rotation of the encryption key.

use std::collections::BTreeMap;
use std::fmt;

use noetl_model::{Timestamp, Value};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::Id;

/// Body of `POST /api/credentials`. `Debug` output omits the secret.
#[derive(Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PutCredential {
    /// Credential name. Replaces the credential with this name, if any.
    pub name: String,
    /// Credential type, such as `postgres`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Secret data, encrypted at rest.
    pub data: Value,
    /// Free-form metadata of the owner, stored in plain text.
    #[serde(default)]
    pub meta: Option<Value>,
    /// Tags of the credential. Default: none.
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// Purpose of the credential.
    #[serde(default)]
    pub description: Option<String>,
}

impl fmt::Debug for PutCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, kind, .. } = self;
        f.debug_struct("PutCredential")
            .field("name", name)
            .field("kind", kind)
            .finish_non_exhaustive()
    }
}

/// A credential. Contains the secret only if the request asked for it. `Debug` output omits the
/// secret.
#[derive(Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CredentialView {
    /// Credential ID, as text. `0` for a keychain entry.
    pub id: Id,
    /// Credential name, unique in its tenant.
    pub name: String,
    /// Credential type, or `keychain` for a keychain entry.
    #[serde(rename = "type")]
    pub kind: String,
    /// Free-form metadata of the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
    /// Tags of the credential. Absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Purpose of the credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Time at which the name was first stored.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Time at which the credential was last stored.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// Decrypted secret data. Present only if requested with `include_data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Problems that the owner should know about, such as secret values too short to redact. Only
    /// in the response of `POST /api/credentials`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl fmt::Debug for CredentialView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, name, .. } = self;
        f.debug_struct("CredentialView").field("id", id).field("name", name).finish_non_exhaustive()
    }
}

/// Decrypted content of a [`SealedCredential`].
#[derive(Clone, Serialize, Deserialize)]
pub struct OpenedCredential {
    /// Credential with decrypted data.
    #[serde(flatten)]
    pub credential: CredentialView,
    /// Placeholders that resolve in the worker's execution, keyed by field of the credential.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub placeholders: BTreeMap<String, String>,
}

/// Response of `GET /api/credentials`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CredentialList {
    /// Credentials without their secrets, sorted by name.
    pub items: Vec<CredentialView>,
    /// Filter of the request. Absent if the request had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<CredentialFilterView>,
}

/// Filter for a list of credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CredentialFilterView {
    /// Credential type to list. Default: all types.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Text that the name or description must contain, case-insensitive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
}

/// Response of `DELETE /api/credentials/{identifier}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CredentialDeleted {
    /// Confirmation as readable text.
    pub message: String,
    /// ID of the deleted credential, as text.
    pub id: Id,
}

/// Response of `GET /api/credentials/{identifier}/sealed`: a credential encrypted with a worker's
/// public key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SealedCredential {
    /// Name of the encryption algorithm: `x25519-hkdf-sha256-chacha20-poly1305`.
    pub alg: String,
    /// Version of the algorithm's format. Currently 1.
    pub v: u32,
    /// Ephemeral public key, in base64.
    pub eph_pub: String,
    /// Encrypted credential, in base64.
    pub ciphertext: String,
}

/// Response of `GET /api/internal/secret-audit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretAuditReply {
    /// Records, one per request for a secret, latest first.
    pub rows: Vec<SecretAuditRow>,
}

/// Audit record of a request for a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretAuditRow {
    /// ID of the record, as text.
    pub audit_id: Id,
    /// Time of the request.
    #[schema(value_type = String, format = DateTime)]
    pub occurred_at: Timestamp,
    /// Name of the requested credential.
    pub credential: String,
    /// Requested operation, such as `resolve` or `sealed`.
    pub operation: String,
    /// Outcome: `ok`, `not_found`, `denied`, or `failed`.
    pub outcome: String,
    /// Identity of the caller, such as `token:ID` or `oidc:SUBJECT`. A worker's own name is in
    /// `notes`.
    pub worker_id: Option<String>,
    /// ID of the execution that needed the secret, as text.
    pub execution_id: Option<Id>,
    /// ID of that execution's parent, as text.
    pub parent_execution_id: Option<Id>,
    /// Version of the encryption key that wraps the secret.
    pub kek_version: Option<String>,
    /// Additional information, such as the name of the worker.
    pub notes: Option<String>,
}

/// Response of `GET /api/internal/wallet/key-status`: progress of a key rotation, over all tenants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyStatusReply {
    /// Version of the current encryption key.
    pub version: String,
    /// Whether the server knows the previous key.
    pub has_previous: bool,
    /// Whether no record is wrapped by the previous key, so the key can be removed.
    pub complete: bool,
    /// Counts of stored credentials.
    pub credentials: KeyTallyView,
    /// Counts of keychain entries.
    pub keychain: KeyTallyView,
}

/// Number of records per encryption key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyTallyView {
    /// Number of records in total.
    pub total: u64,
    /// Records wrapped by the current key.
    pub current: u64,
    /// Records wrapped by the previous key.
    pub previous: u64,
    /// Records wrapped by neither key. The server can't decrypt them.
    pub unreadable: u64,
    /// Number of records by key version.
    pub versions: BTreeMap<String, u64>,
}

/// Body of `POST /api/internal/wallet/rotate-kek`. Optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RotateRequest {
    /// Maximum number of records to rewrap. Default: 10,000.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// Response of `POST /api/internal/wallet/rotate-kek`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RotateReply {
    /// Number of rewrapped credentials.
    pub credentials: u64,
    /// Number of rewrapped keychain entries.
    pub keychain: u64,
    /// Records that the current key already wrapped.
    pub current: u64,
    /// Records skipped because another writer changed them at the same time.
    pub changed: u64,
    /// Records that no known key can decrypt.
    pub unreadable: u64,
    /// Up to 100 of the undecryptable records, such as `credential 12` or `keychain
    /// default/api:1:global`.
    pub unreadable_places: Vec<String>,
    /// Whether every record was processed and none was skipped. If `false`, repeat the request.
    pub complete: bool,
}
