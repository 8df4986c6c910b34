//! Builds the scopes in which an execution's templates are rendered.

use std::sync::Arc;

use noetl_model::Failure;
use noetl_template::{ExecutionIdentity, Scope, StepOutput, ValueLoader, ValueSlot, from_json};

use crate::draft::Draft;
use crate::execution::Execution;
use crate::values::failed_result;

/// Returns the scope common to all templates.
pub(crate) fn base_scope(draft: &Draft<'_, '_>) -> Scope {
    let Draft { playbook, state, moment, .. } = draft;
    Scope {
        workload: state.workload.names.clone(),
        ctx: state.ctx.names.clone(),
        results: state.results.names.clone(),
        tasks: playbook.first_tasks.clone(),
        spec: playbook.spec.as_ref().map(from_json),
        identity: identity(state),
        env: moment.env.clone(),
        now: moment.now,
        entropy: moment.entropy.clone(),
        reach: ValueLoader::new(draft.loaded.values()),
        ..Scope::default()
    }
}

/// Returns the scope of a tool's settings: the base, and the data of the preceding step as
/// `result`.
pub(crate) fn tool_scope(draft: &Draft<'_, '_>, previous: Option<&str>) -> Scope {
    let previous = previous.and_then(|step| draft.state.results.get(step)).cloned();
    Scope { previous, ..base_scope(draft) }
}

/// Returns the scope of `set` and arcs: the base, the output of the step run that ended, and the
/// name of the boundary event.
pub(crate) fn exit_scope(
    draft: &Draft<'_, '_>,
    step: &Arc<str>,
    data: ValueSlot,
    failure: Option<&Failure>,
    loops: bool,
) -> Scope {
    let mut scope = base_scope(draft);
    // The ended step is also visible under its own name, before its result is recorded.
    let own = match failure {
        Some(failure) => failed_result(failure).into(),
        None => data.clone(),
    };
    scope.own = Some((step.clone(), own));
    scope.event = Some(match failure {
        Some(_) => "step.failed",
        None if loops => "loop.done",
        None => "step.done",
    });
    scope.output =
        Some(StepOutput { data, failure: failure.cloned().map(Arc::new), envelope_first: false });
    scope
}

fn identity(state: &Execution) -> ExecutionIdentity {
    let Some(started) = &state.started else {
        return ExecutionIdentity { execution: state.id, ..ExecutionIdentity::default() };
    };
    ExecutionIdentity {
        execution: state.id,
        catalog: started.catalog,
        path: started.path.clone(),
        version: started.version,
        parent: started.parent,
    }
}
