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
    /// Answers of the earlier segments of a split pipeline, by the segment's index.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub earlier: Map,
    /// Position in a split pipeline; `None` for every other command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Box<SplitScope>>,
    /// The catalog entry of the playbook.
    pub catalog: CatalogId,
    pub path: Arc<str>,
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
    pub reference: Arc<BlobRef>,
    /// Fields of it that are known without reading it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub fields: Value,
}

/// Which names of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScopePart {
    Workload,
    /// Durable variables.
    Ctx,
    /// Results of steps.
    Steps,
    /// Data of the step before.
    Previous,
    /// Answers of earlier segments.
    Earlier,
}

/// Position of a command in a pipeline that the control plane splits at its `playbook` tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitScope {
    /// Index of the segment, from 0. The command that only merges results has the number of
    /// segments.
    pub segment: u32,
    /// Whether more of the pipeline follows. A worker then answers with a [`SegmentAnswer`] instead
    /// of the pipeline's result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// Step whose arc led to the step run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Arc<str>>,
    /// Attempt of the whole pipeline, from 1. More than 1 only for a row of a cursor that is retried.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub attempt: u32,
    /// Tasks behind [`CommandScope::earlier`], one entry per earlier segment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<EarlierSegment>,
}

/// Form of the result of an earlier segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlierSegment {
    /// A [`SegmentAnswer`] of a worker.
    Tasks,
    /// The result of a called playbook.
    Call {
        /// Label of the task.
        name: Arc<str>,
        /// Whether the call failed and a rule accepted that.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
    },
}

/// Answer of a worker that ran a segment more of the pipeline follows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SegmentAnswer {
    /// Whether a rule ended the pipeline (`do: break`).
    #[serde(rename = "break")]
    pub broke: bool,
    /// Results of the tasks, in the order they last ran.
    pub tasks: Vec<TaskResult>,
}

/// Result of one task of a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    /// Label of the task.
    pub name: Arc<str>,
    /// Data of the task, or the failure as templates see it.
    pub data: Value,
    /// Whether it failed and a rule accepted that.
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
