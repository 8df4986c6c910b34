//! What the templates of a command may name, beside what is rendered already.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::event::BlobRef;
use crate::{CatalogId, ExecutionId, Map, Value};

/// The slice of an execution's state that a command's remaining templates name. Whoever runs the
/// command has nothing else of the execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandScope {
    /// Keys of the workload.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub workload: Map,
    /// Durable variables.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub ctx: Map,
    /// Results of steps, by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub steps: Map,
    /// The label of the first task of each of those steps that is a pipeline.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tasks: BTreeMap<Arc<str>, Arc<str>>,
    /// What earlier commands of the same visit set with `step.*`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub step: Map,
    /// Data of the step whose arc led to the command's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Value>,
    /// The iteration of a loop it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<IterationScope>,
    /// The playbook's root `spec`, if a template names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Value>,
    /// Variables of the environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Entries of the playbook's keychain: name to `kind` and settings as written, never a secret.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub keychain: Map,
    /// Values that are too large for the log: where each is to be found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blobs: Vec<ScopeBlob>,
    /// The catalog entry of the playbook.
    pub catalog: CatalogId,
    /// That entry's path.
    pub path: Arc<str>,
    /// That entry's version.
    pub version: u32,
    /// The execution that started this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ExecutionId>,
}

/// One iteration of a loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IterationScope {
    /// The item's name in templates.
    pub name: Arc<str>,
    /// The item.
    pub item: Value,
    /// Its place, from 0.
    pub index: u32,
    /// How many there are, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u32>,
}

/// A named value that is kept elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScopeBlob {
    /// Among which names it belongs.
    pub among: ScopePart,
    /// Its name there; empty where there is but one.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub name: Arc<str>,
    /// Where it is.
    pub reference: Arc<BlobRef>,
    /// Fields of it that are known without reading it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub fields: Value,
}

/// Which names of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScopePart {
    /// The workload.
    Workload,
    /// Durable variables.
    Ctx,
    /// Results of steps.
    Steps,
    /// Data of the step before.
    Previous,
}
