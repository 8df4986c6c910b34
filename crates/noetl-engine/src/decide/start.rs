//! Starts an execution (rule R1).

use std::sync::Arc;

use noetl_model::event::ExecutionStart;
use noetl_model::{DEPTH_MAX, Fact, Map, Value, is_deeper_than};
use noetl_template::{Names, Scope, ValueTemplate, from_json};

use crate::decision::Rejection;
use crate::draft::{Activation, Draft};
use crate::execution::Status;
use crate::input::StartInput;
use crate::scope;

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: StartInput) -> Result<(), Rejection> {
    if draft.state.status != Status::Absent {
        return Err(Rejection::AlreadyStarted);
    }
    let workload = workload(draft, &input)?;
    let variables = initial_context(draft, &input, &workload)?;
    draft.actor = input.actor;
    draft.record(Fact::PlaybookStarted(Box::new(ExecutionStart {
        catalog: input.catalog,
        path: input.path,
        version: input.version,
        workload,
        parent: input.parent,
        pool: input.pool,
        parent_command: input.parent_command,
        returns: input.returns,
        depth: input.depth,
        deadline: draft.playbook.deadline.map(|limit| draft.moment.now.plus(limit)),
        forked: input.forked,
        trace: input.trace,
    })));
    if !variables.is_empty() {
        let step = draft.playbook.step(draft.playbook.entry).name.clone();
        let (values, locals) = (variables, Map::new());
        draft.record(Fact::ContextUpdated { step, run: 0, values, locals });
    }
    let entry = draft.playbook.entry;
    draft.queue.push_back(Activation { step: entry, tokens: 0, from: None, held: false });
    draft.settle();
    Ok(())
}

/// Renders the playbook's workload defaults and merges the payload over them: maps merge, other
/// values replace. A default that the payload replaces is not rendered, so it cannot fail.
pub(super) fn workload(draft: &Draft<'_, '_>, input: &StartInput) -> Result<Map, Rejection> {
    let payload = from_json(&Value::Object(input.payload.clone()));
    let mut scope = Scope { payload: Some(payload), ..scope_for_start(draft, input) };
    // Templates of defaults may refer to the payload.
    scope.workload = Arc::new(named(&input.payload));
    let mut merged = Map::new();
    match &draft.playbook.workload {
        ValueTemplate::Map(defaults) => {
            for (name, value) in defaults {
                if input.payload.get(name).is_some_and(|section| !section.is_object()) {
                    continue;
                }
                let value = value.render(&scope);
                let value =
                    value.map_err(|e| Rejection::Workload(format!("workload.{name}: {e}")))?;
                merged.insert(name.clone(), value);
            }
        }
        ValueTemplate::Literal(Value::Object(defaults)) => merged.clone_from(defaults),
        // The playbook decoder produces only maps for a workload.
        ValueTemplate::Literal(_) | ValueTemplate::Template(_) | ValueTemplate::List(_) => {}
    }
    merge(&mut merged, &input.payload);
    if merged.values().any(|value| is_deeper_than(value, DEPTH_MAX)) {
        let message = format!("the workload nests more than {DEPTH_MAX} levels deep");
        return Err(Rejection::Workload(message));
    }
    Ok(merged)
}

fn scope_for_start(draft: &Draft<'_, '_>, input: &StartInput) -> Scope {
    let mut scope = scope::base_scope(draft);
    scope.identity.catalog = input.catalog;
    scope.identity.path = input.path.clone();
    scope.identity.version = input.version;
    scope.identity.parent = input.parent;
    scope
}

/// Merges `over` into `into`, recursively: maps merge, other values replace.
pub fn merge(into: &mut Map, over: &Map) {
    for (key, value) in over {
        match (into.get_mut(key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => merge(below, above),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Renders the playbook's initial `ctx` variables, whose templates may refer to the workload.
fn initial_context(
    draft: &Draft<'_, '_>,
    input: &StartInput,
    workload: &Map,
) -> Result<Map, Rejection> {
    let mut values = Map::new();
    if draft.playbook.vars.is_empty() {
        return Ok(values);
    }
    let mut scope = scope_for_start(draft, input);
    scope.workload = Arc::new(named(workload));
    for (name, value) in &draft.playbook.vars {
        let value = value.render(&scope);
        let value = value.map_err(|e| Rejection::Workload(format!("vars.{name}: {e}")))?;
        values.insert(name.clone(), value);
    }
    Ok(values)
}

fn named(map: &Map) -> Names {
    let named =
        |(name, value): (&String, &Value)| (Arc::from(name.as_str()), from_json(value).into());
    map.iter().map(named).collect()
}
