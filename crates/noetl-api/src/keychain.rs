//! The keychain: secrets and tokens by the names playbooks give them.

use std::fmt;

use noetl_model::{Timestamp, Value};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::Id;

/// Which entry of a name is meant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct KeychainQuery {
    /// Who shares it: `local`, `shared` or, when left out, `global`.
    #[serde(default)]
    pub scope_type: Option<String>,
    /// The execution it is for.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    pub execution_id: Option<Id>,
}

/// The body of `POST /api/keychain/{catalog_id}/{name}`. Printing it shows nothing of what is secret.
#[derive(Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PutKeychain {
    /// What is secret.
    pub data: Value,
    /// Who shares it: `local`, `shared` or, when left out, `global`.
    #[serde(default)]
    pub scope_type: Option<String>,
    /// The execution it is for.
    #[serde(default)]
    pub execution_id: Option<Id>,
    /// The type of the credential behind it.
    #[serde(default)]
    pub credential_type: Option<String>,
    /// `secret`, or `token` for one that was made from a secret.
    #[serde(default)]
    pub cache_type: Option<String>,
    /// When it ends to be good; never when neither this nor `expires_in` is given.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// The same in seconds from now; `expires_at` wins.
    #[serde(default)]
    pub expires_in: Option<i64>,
    /// Whether it is to be renewed before that.
    #[serde(default)]
    pub auto_renew: bool,
    /// How to renew it.
    #[serde(default)]
    pub renew_config: Option<Value>,
}

impl fmt::Debug for PutKeychain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PutKeychain").field("scope_type", &self.scope_type).finish_non_exhaustive()
    }
}

/// What was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeychainKept {
    /// `success`.
    pub status: String,
    /// What it is found by.
    pub cache_key: String,
    /// When it ends to be good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
}

/// What was found under a name.
#[derive(Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KeychainView {
    /// `found`, `expired` or `not_found`.
    pub status: String,
    /// What is secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// When it ends to be good, or did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// Whether it is to be renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_renew: Option<bool>,
    /// How often it was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_count: Option<u64>,
}

impl fmt::Debug for KeychainView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeychainView").field("status", &self.status).finish_non_exhaustive()
    }
}

/// What became of a removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeychainDeleted {
    /// `deleted` or `not_found`.
    pub status: String,
    /// What it was found by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_key: Option<String>,
}

/// The entries of a playbook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeychainList {
    /// The playbook, as text.
    pub catalog_id: Id,
    /// Its entries, expired ones too. What they hold is not shown.
    pub entries: Vec<KeychainItem>,
}

/// One entry, without what is secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeychainItem {
    /// Its name.
    pub keychain_name: String,
    /// Who shares it.
    pub scope_type: String,
    /// The execution it is for, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<Id>,
    /// When it ends to be good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// Whether that is past.
    pub expired: bool,
    /// How often it was used.
    pub access_count: u64,
    /// When it was last used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub accessed_at: Option<Timestamp>,
    /// When it was put.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}
