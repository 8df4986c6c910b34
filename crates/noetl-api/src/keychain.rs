//! Keychain: secrets and tokens that playbooks refer to by name.

use std::fmt;

use noetl_model::{Timestamp, Value};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::Id;

/// Query that selects one of the entries with a name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct KeychainQuery {
    /// Scope of the entry. `local`: one execution. `shared`: an execution and its children. Any
    /// other value, and the default: `global`, all executions of the playbook.
    #[serde(default)]
    pub scope_type: Option<String>,
    /// ID of the execution that owns the entry, for scopes `local` and `shared`.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    pub execution_id: Option<Id>,
}

/// Body of `POST /api/keychain/{catalog_id}/{name}`. Replaces an existing entry. `Debug` output
/// omits the secret.
#[derive(Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PutKeychain {
    /// Secret data, encrypted at rest.
    pub data: Value,
    /// Scope of the entry. `local`: one execution. `shared`: an execution and its children. Any
    /// other value, and the default: `global`, all executions of the playbook.
    #[serde(default)]
    pub scope_type: Option<String>,
    /// ID of the execution that owns the entry, for scopes `local` and `shared`.
    #[serde(default)]
    pub execution_id: Option<Id>,
    /// Type of the underlying credential. Default: `keychain`.
    #[serde(default)]
    pub credential_type: Option<String>,
    /// `secret`, or `token` for a token derived from a secret. Default: `secret`.
    #[serde(default)]
    pub cache_type: Option<String>,
    /// Expiration time. Default: `expires_in`, or never if both are absent.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// Time to expiration in seconds, 1 to 3,153,600,000 (100 years). Ignored if `expires_at` is
    /// set.
    #[serde(default)]
    pub expires_in: Option<i64>,
    /// Whether to renew the entry before it expires. Default: `false`.
    #[serde(default)]
    pub auto_renew: bool,
    /// Settings for the renewal.
    #[serde(default)]
    pub renew_config: Option<Value>,
}

impl fmt::Debug for PutKeychain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PutKeychain").field("scope_type", &self.scope_type).finish_non_exhaustive()
    }
}

/// Response of `POST /api/keychain/{catalog_id}/{name}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeychainStored {
    /// Always `success`; failures are HTTP errors.
    pub status: String,
    /// Key of the entry: name, catalog entry ID, and scope.
    pub cache_key: String,
    /// Expiration time. Absent if the entry doesn't expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
}

/// Response of `GET /api/keychain/{catalog_id}/{name}`. `Debug` output omits the secret.
#[derive(Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KeychainView {
    /// `found`, `expired`, or `not_found`.
    pub status: String,
    /// Decrypted secret data. Present only if the status is `found`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Expiration time. Absent if the entry doesn't expire or doesn't exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// Whether to renew the entry before it expires. Absent if the entry doesn't exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_renew: Option<bool>,
    /// Number of times the entry was read. Absent if the entry doesn't exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_count: Option<u64>,
}

impl fmt::Debug for KeychainView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeychainView").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Response of `DELETE /api/keychain/{catalog_id}/{name}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeychainDeleted {
    /// `deleted`, or `not_found` if there was no such entry.
    pub status: String,
    /// Key of the deleted entry. Absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_key: Option<String>,
}

/// Response of `GET /api/keychain/catalog/{catalog_id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeychainList {
    /// Catalog entry ID of the playbook, as text.
    pub catalog_id: Id,
    /// Entries of the playbook without their secrets, including expired ones.
    pub entries: Vec<KeychainItem>,
}

/// A keychain entry without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeychainItem {
    /// Name of the entry.
    pub keychain_name: String,
    /// Scope: `local`, `shared`, or `global`.
    pub scope_type: String,
    /// ID of the execution that owns the entry, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<Id>,
    /// Expiration time. Absent if the entry doesn't expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// Whether the entry has expired.
    pub expired: bool,
    /// Number of times the entry was read.
    pub access_count: u64,
    /// Time at which the entry was last read. Absent if it was never read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub accessed_at: Option<Timestamp>,
    /// Time at which the entry was stored.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}
