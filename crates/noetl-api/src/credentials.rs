//! Credentials: keeping, listing, reading, removing.

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
