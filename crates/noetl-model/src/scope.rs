//! Values available to the templates that a worker renders.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::blob::BlobRef;
use crate::{CatalogId, ExecutionId, Map, Value};

/// Subset of an execution's state that a command's remaining templates refer to. The worker has
/// access to no other state of the execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandScope {
    /// Referenced keys of the workload.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub workload: Map,
    /// Referenced durable variables (`ctx`).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub ctx: Map,
    /// Results of steps, by step name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub steps: Map,
    /// For each step in `steps` that is a pipeline, the label of its first task.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tasks: BTreeMap<Arc<str>, Arc<str>>,
    /// Values that earlier commands of the same step run set with `step.*`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub step: Map,
    /// Data of the step whose arc led to the command's step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Value>,
    /// Loop iteration that the command is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<IterationScope>,
    /// Root `spec` of the playbook, if a template names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Value>,
    /// Environment variables that templates name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Keychain entries of the playbook: `kind` and settings by name, as written. Never contains a
    /// secret.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub keychain: Map,
    /// References to values that are too large for the log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blobs: Vec<ScopeBlob>,
    /// Results of the earlier segments of a split pipeline, by segment index.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub earlier: Map,
    /// Position in a split pipeline. `None` for every other command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Box<SplitScope>>,
    /// Catalog entry of the playbook.
    pub catalog: CatalogId,
    pub path: Arc<str>,
    pub version: u32,
    /// Parent execution, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ExecutionId>,
}

/// Current iteration of a loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IterationScope {
    /// Name of the item in templates.
    pub name: Arc<str>,
    pub item: Value,
    /// Index of the item, from 0.
    pub index: u32,
    /// Total number of items, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u32>,
}

/// A scope value that is stored as a blob.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScopeBlob {
    /// Part of the scope that the value belongs to.
    pub among: ScopePart,
    /// Name within that part. Empty if the part is a single value.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub name: Arc<str>,
    pub reference: Arc<BlobRef>,
    /// Fields of the value that are known without reading the blob.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub fields: Value,
}

/// Part of a command's scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScopePart {
    Workload,
    /// Durable variables, read as `ctx`.
    Ctx,
    /// Results of steps, by step name.
    Steps,
    /// Data of the previous step.
    Previous,
    /// Results of earlier segments of a split pipeline.
    Earlier,
}

/// Position of a command in a pipeline that the control plane splits at its `playbook` tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitScope {
    /// Index of the segment, from 0. For the command that only merges results, the number of
    /// segments.
    pub segment: u32,
    /// Whether more segments follow. If so, the worker returns a [`SegmentAnswer`] instead of the
    /// pipeline's result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// Step whose arc led to the step run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Arc<str>>,
    /// Attempt of the whole pipeline, from 1. Greater than 1 only for a cursor row that is retried.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub attempt: u32,
    /// Forms of the results in [`CommandScope::earlier`], one entry per earlier segment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<EarlierSegment>,
}

/// Form of an earlier segment's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlierSegment {
    /// A [`SegmentAnswer`] returned by a worker.
    Tasks,
    /// Result of a called playbook.
    Call {
        name: Arc<str>,
        /// Whether the call failed and a rule accepted the failure.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
    },
}

/// Result of a segment that is not the last of its pipeline.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SegmentAnswer {
    /// Whether a rule ended the pipeline (`do: break`).
    #[serde(rename = "break")]
    pub broke: bool,
    /// Results of the tasks, in the order in which they last ran.
    pub tasks: Vec<TaskResult>,
}

/// Result of a pipeline task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    pub name: Arc<str>,
    /// Data of the task, or the failure in the form that templates see.
    pub data: Value,
    /// Whether the task failed and a rule accepted the failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

const fn first() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde calls")]
const fn is_first(attempt: &u32) -> bool {
    *attempt == 1
}
