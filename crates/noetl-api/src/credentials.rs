//! Credentials: keeping, listing, reading, removing.

use std::collections::BTreeMap;
use std::fmt;

use noetl_model::{Timestamp, Value};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::Id;

/// The body of `POST /api/credentials`. Printing it shows nothing of what is secret.
#[derive(Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PutCredential {
    /// Its name; one that has it is replaced.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What is secret.
    pub data: Value,
    /// Whatever its owner notes.
    #[serde(default)]
    pub meta: Option<Value>,
    /// Its tags.
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// What it is for.
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

/// A credential as it is shown. What is secret is there only when it was asked for.
#[derive(Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CredentialView {
    /// Its id, as text.
    pub id: Id,
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whatever its owner notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
    /// Its tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// When its name was first used.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it was last put.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// What is secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// What its owner should know of it, said when it is put.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl fmt::Debug for CredentialView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, name, .. } = self;
        f.debug_struct("CredentialView").field("id", id).field("name", name).finish_non_exhaustive()
    }
}

/// A credential as a worker opens it.
#[derive(Clone, Serialize, Deserialize)]
pub struct OpenedCredential {
    /// Credential with decrypted data.
    #[serde(flatten)]
    pub credential: CredentialView,
    /// Placeholders that resolve in the worker's execution, by field of the credential.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub placeholders: BTreeMap<String, String>,
}

/// The reply of `GET /api/credentials`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CredentialList {
    /// The credentials, by name.
    pub items: Vec<CredentialView>,
    /// What was asked for, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<CredentialFilterView>,
}

/// What a list of credentials was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CredentialFilterView {
    /// Only this type.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only names and descriptions that contain this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
}

/// The reply of `DELETE /api/credentials/{identifier}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CredentialDeleted {
    /// One sentence for people.
    pub message: String,
    /// The id it had, as text.
    pub id: Id,
}

/// The reply of `GET /api/credentials/{identifier}/sealed`: a credential that one worker can open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SealedCredential {
    /// How it is sealed.
    pub alg: String,
    /// Which form of that.
    pub v: u32,
    /// The public half of the key made for it, in base64.
    pub eph_pub: String,
    /// What is sealed, in base64.
    pub ciphertext: String,
}

/// Who was given which secret, latest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretAuditReply {
    /// One per time that a secret was asked for.
    pub rows: Vec<SecretAuditRow>,
}

/// One time that a secret was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretAuditRow {
    /// Its id, as text.
    pub audit_id: Id,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub occurred_at: Timestamp,
    /// Which.
    pub credential: String,
    /// What was asked.
    pub operation: String,
    /// What came of it: `ok`, `not_found`, `denied` or `failed`.
    pub outcome: String,
    /// Who asked.
    pub worker_id: Option<String>,
    /// The execution it was for, as text.
    pub execution_id: Option<Id>,
    /// That execution's parent, as text.
    pub parent_execution_id: Option<Id>,
    /// The version of the key it is encrypted under.
    pub kek_version: Option<String>,
    /// Anything else.
    pub notes: Option<String>,
}

/// How far a change of the encryption key has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyStatusReply {
    /// What the key in use is called.
    pub version: String,
    /// Whether the key before is known.
    pub has_previous: bool,
    /// Whether nothing needs the key before any more.
    pub complete: bool,
    /// Credentials.
    pub credentials: KeyTallyView,
    /// Entries of the keychain.
    pub keychain: KeyTallyView,
}

/// What is encrypted under which key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyTallyView {
    /// How many there are.
    pub total: u64,
    /// How many are under the key in use.
    pub current: u64,
    /// How many under the key before.
    pub previous: u64,
    /// How many under neither.
    pub unreadable: u64,
    /// How many by the name of their key.
    pub versions: BTreeMap<String, u64>,
}

/// The body of `POST /api/internal/wallet/rotate-kek`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RotateRequest {
    /// How many records are wrapped again at most; 10 000 when left out.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// What was wrapped again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RotateReply {
    /// Credentials.
    pub credentials: u64,
    /// Entries of the keychain.
    pub keychain: u64,
    /// Records that were as they should be.
    pub current: u64,
    /// Records that somebody else wrote meanwhile.
    pub changed: u64,
    /// How many could not be read under any key.
    pub unreadable: u64,
    /// Some of those.
    pub unreadable_places: Vec<String>,
    /// Whether all were looked at. If not, ask again.
    pub complete: bool,
}
