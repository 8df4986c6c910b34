//! Translates segments of split pipelines, as far as published workers can run them.

use std::sync::Arc;

use noetl_model::Value;
use noetl_model::event::CommandSpec;
use noetl_model::scope::{CommandScope, ScopePart, SegmentAnswer, TaskResult};
use noetl_playbook::pipeline::{Pipeline, earlier_key, earlier_tasks, merged};
use serde_json::json;

use crate::values::ResolvedValues;

/// Returns why a published worker can't run a segment, or `None` if it can.
pub(super) fn lacking(issued: &CommandSpec) -> Option<String> {
    let (scope, split) = (issued.scope.as_deref()?, issued.split()?);
    let tasks = issued.config.get("tasks").and_then(Value::as_array);
    let mut rules = tasks.into_iter().flatten().filter_map(|task| task.get("rules")?.as_array());
    let breaks = |rule: &Value| rule.get("do").is_some_and(|action| action == "break");
    if split.partial && rules.any(|rules| rules.iter().any(breaks)) {
        let why = "published workers don't report that a rule ended a pipeline before its call";
        return Some(why.to_owned());
    }
    if !split.partial && scope.blobs.iter().any(|blob| blob.among == ScopePart::Earlier) {
        let why = "published workers don't merge results of more than 64 KiB around a call";
        return Some(why.to_owned());
    }
    let source = json!({ "tasks": issued.config.get("tasks") });
    let pipeline = Pipeline::compile(Arc::new(source)).ok().filter(|_| split.segment > 0)?;
    let named = pipeline.mentions().iter().find(|it| matches!(&*it.name, "_prev" | "results"))?;
    Some(format!("published workers don't know `{}` after a call in a pipeline", named.name))
}

/// Returns the results of the tasks before a segment, or `None` if the command is not a segment.
pub(super) fn earlier(scope: &CommandScope, found: &ResolvedValues) -> Option<Vec<TaskResult>> {
    let split = scope.split.as_deref()?;
    let answer = |segment: usize| {
        let key = earlier_key(segment);
        let mut blobs = scope.blobs.iter().zip(&found.blobs);
        let blob = blobs.find(|(blob, _)| blob.among == ScopePart::Earlier && *blob.name == *key);
        blob.map(|(_, value)| value)
            .or_else(|| scope.earlier.get(&key))
            .cloned()
            .unwrap_or_default()
    };
    earlier_tasks(split, (0..split.tasks.len()).map(answer).collect()).ok()
}

/// Returns the result of a segment whose tasks returned these results.
pub(super) fn raised(issued: &CommandSpec, left: Vec<(String, Value)>) -> Option<Value> {
    let (scope, split) = (issued.scope.as_deref()?, issued.split()?);
    let task =
        |(name, data): (String, Value)| TaskResult { name: name.into(), data, failed: false };
    let tasks = left.into_iter().map(task);
    if split.partial {
        return Some(json!(SegmentAnswer { broke: false, tasks: tasks.collect() }));
    }
    let mut all = earlier(scope, &ResolvedValues::default())?;
    all.extend(tasks);
    Some(merged(all))
}
