//! Template names in the flat layout of published workers: workload keys and step results at the
//! top level, and also under `workload` and `steps`.

use noetl_model::scope::{CommandScope, ScopePart, TaskResult};
use noetl_model::{ExecutionId, Map, Value};
use serde_json::json;

use crate::split;
use crate::values::ResolvedValues;

pub(super) fn template_names(
    execution: ExecutionId,
    scope: &CommandScope,
    found: &ResolvedValues,
) -> Map {
    let (mut workload, mut ctx) = (scope.workload.clone(), scope.ctx.clone());
    let (mut results, mut previous) = (scope.steps.clone(), scope.previous.clone());
    for (blob, value) in scope.blobs.iter().zip(&found.blobs) {
        let name = blob.name.to_string();
        match blob.among {
            ScopePart::Workload => drop(workload.insert(name, value.clone())),
            ScopePart::Ctx => drop(ctx.insert(name, value.clone())),
            ScopePart::Steps => drop(results.insert(name, value.clone())),
            ScopePart::Previous => previous = Some(value.clone()),
            ScopePart::Earlier => {}
        }
    }
    let mut names = workload.clone();
    names.extend(ctx.clone());
    let mut steps = Map::new();
    for (step, data) in results {
        steps.insert(step.clone(), json!({ "status": "success", "data": data }));
        names.insert(step, with_itself(data));
    }
    let tasks = split::earlier(scope, found).unwrap_or_default();
    for TaskResult { name, data, .. } in tasks {
        names.insert(name.to_string(), with_itself(data));
    }
    names.extend(previous.map(|data| ("result".to_owned(), with_itself(data))));
    names.extend(scope.spec.clone().map(|spec| ("spec".to_owned(), spec)));
    if let Some(iteration) = &scope.iteration {
        let mut iter = Map::new();
        iter.insert(iteration.name.to_string(), iteration.item.clone());
        iter.insert("_index".to_owned(), iteration.index.into());
        iter.insert("_total".to_owned(), iteration.total.into());
        let own = [("index", iteration.index.into()), ("total", iteration.total.into())];
        names.extend(iter.clone());
        iter.extend(own.map(|(name, value)| (name.to_owned(), value)));
        names.insert("iter".to_owned(), Value::Object(iter));
    }
    if !scope.env.is_empty() {
        let env = scope.env.iter().map(|(name, text)| (name.clone(), text.as_str().into()));
        names.insert("env".to_owned(), Value::Object(env.collect()));
    }
    if !found.keychain.is_empty() {
        names.insert("keychain".to_owned(), Value::Object(found.keychain.clone()));
    }
    // A variable that is not set is looked up in the workload.
    let mut variables = workload.clone();
    variables.extend(ctx);
    names.insert("workload".to_owned(), Value::Object(workload));
    names.insert("ctx".to_owned(), Value::Object(variables));
    names.insert("steps".to_owned(), Value::Object(steps));
    names.insert("path".to_owned(), (*scope.path).into());
    names.insert("catalog_id".to_owned(), scope.catalog.to_string().into());
    names.insert("execution_id".to_owned(), execution.to_string().into());
    names
}

/// Returns a result with its fields at the top level and itself under `data`.
fn with_itself(mut data: Value) -> Value {
    let whole = data.clone();
    if let Value::Object(fields) = &mut data {
        fields.entry("data").or_insert(whole);
    }
    data
}
