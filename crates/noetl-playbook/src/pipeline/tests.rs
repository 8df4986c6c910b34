//! Tests of the pipeline interpreter.

mod blobs;
mod ends;
mod names;
mod properties;
mod retries;
mod secrets;
mod sources;
mod verbs;

use std::sync::Arc;

use noetl_model::{Failure, FailureKind};
use noetl_template::{Names, Scope, from_json_owned};
use serde_json::{Value, json};

use super::{Pipeline, PipelineEnd, PipelineRequest, PipelineRun};

fn pipeline(tasks: Value) -> Arc<Pipeline> {
    Arc::new(Pipeline::compile(Arc::new(json!({ "tasks": tasks }))).unwrap())
}

fn names(value: Value) -> Arc<Names> {
    let Value::Object(map) = value else { panic!("names are a map") };
    let names = map.into_iter().map(|(key, value)| (Arc::from(key), from_json_owned(value).into()));
    Arc::new(names.collect())
}

fn scope(workload: Value) -> Scope {
    Scope { workload: names(workload), ..Scope::default() }
}

fn refused(kind: FailureKind) -> Result<Value, Failure> {
    Err(Failure::new(kind, "it went wrong"))
}

/// Runs tasks with these answers, one per call; what was asked for, and how it ended.
fn transcript(
    tasks: Value,
    scope: Scope,
    answers: Vec<Result<Value, Failure>>,
) -> (Vec<String>, PipelineEnd) {
    let mut run = PipelineRun::new(pipeline(tasks), scope);
    let mut answers = answers.into_iter();
    let mut lines = Vec::new();
    loop {
        match run.turn() {
            PipelineRequest::Call(call) => {
                let mut line = format!("{}#{}", call.label, call.attempt);
                for map in [&call.config, &call.input] {
                    if !map.is_empty() {
                        line = format!("{line} {}", Value::Object(map.clone()));
                    }
                }
                lines.push(line);
                run.answered(answers.next().expect("an answer for every call"), 5);
            }
            PipelineRequest::Pause { seconds } => lines.push(format!("pause {seconds}")),
            PipelineRequest::Need(places) => panic!("nothing is away: {places:?}"),
            PipelineRequest::Secrets(names) => panic!("nobody has secrets: {names:?}"),
            PipelineRequest::Done(end) => {
                assert_eq!(answers.len(), 0, "all answers were asked for");
                return (lines, *end);
            }
        }
    }
}

/// Returns the failure of a pipeline.
#[track_caller]
fn failure(end: PipelineEnd) -> Failure {
    end.outcome.expect_err("the pipeline failed")
}
