//! What a run asks for, and how it ends.

use std::sync::Arc;

use noetl_model::Failure;
use serde_json::{Map, Value};

use super::call::TaskCall;
use crate::template::Place;

/// What a run asks for next.
#[derive(Debug)]
pub enum Turn {
    /// Call a tool and give its answer to [`super::Run::answered`].
    Call(Box<TaskCall>),
    /// Let time pass.
    Pause {
        /// How many seconds; more than 0.
        seconds: f64,
    },
    /// Find values and give them to [`super::Run::supply`].
    Need(Vec<Place>),
    /// Find entries of the keychain and give them to [`super::Run::secret`].
    Secrets(Vec<Arc<str>>),
    /// It is over. Said once.
    Done(Box<PipelineEnd>),
}

/// How a pipeline ended.
#[derive(Debug, Clone, PartialEq)]
pub struct PipelineEnd {
    /// Its result, or why it failed.
    pub outcome: Result<Value, Failure>,
    /// What it set with `ctx.*`: dotted path to value, in the order they are to be written. There
    /// also when it failed.
    pub ctx: Map<String, Value>,
    /// What it set with `iter.*`, likewise.
    pub iter: Map<String, Value>,
    /// What it set with `step.*`, likewise.
    pub step: Map<String, Value>,
}
