//! Requests of a run to its driver, and the end of a run.

use std::sync::Arc;

use noetl_model::Failure;
use noetl_template::ValueRef;
use serde_json::{Map, Value};

use super::call::TaskCall;

/// Next request of a run.
#[derive(Debug)]
pub enum PipelineRequest {
    /// Call a tool and pass its outcome to [`super::PipelineRun::answered`].
    Call(Box<TaskCall>),
    /// Wait before the next request.
    Pause {
        /// Delay in seconds. Always positive.
        seconds: f64,
    },
    /// Load values and pass them to [`super::PipelineRun::supply`].
    Need(Vec<ValueRef>),
    /// Resolve keychain entries and pass them to [`super::PipelineRun::secret`].
    Secrets(Vec<Arc<str>>),
    /// The run has ended. Returned once.
    Done(Box<PipelineEnd>),
}

/// Outcome of a pipeline run.
#[derive(Debug, Clone, PartialEq)]
pub struct PipelineEnd {
    pub outcome: Result<Value, Failure>,
    /// Variables set with `ctx.*`: values by dotted path, in the order to apply them. Present also
    /// after a failure.
    pub ctx: Map<String, Value>,
    /// Variables set with `iter.*`, in the form of `ctx`.
    pub iter: Map<String, Value>,
    /// Variables set with `step.*`, in the form of `ctx`.
    pub step: Map<String, Value>,
}
