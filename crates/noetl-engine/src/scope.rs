//! What a template of this execution can see.

use std::sync::Arc;

use noetl_model::Failure;
use noetl_playbook::template::{Identity, Output, Reach, Scope, Slot, from_json};

use crate::decide::Draft;
use crate::execution::Execution;
use crate::values::failed_result;

/// The parts every template sees.
pub(crate) fn base(draft: &Draft<'_, '_>) -> Scope {
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
        reach: Reach::new(draft.loaded.values()),
        ..Scope::default()
    }
}

/// For a tool's settings: the base, and the data of the step that led here as `result`.
pub(crate) fn for_tool(draft: &Draft<'_, '_>, previous: Option<&str>) -> Scope {
    let previous = previous.and_then(|step| draft.state.results.get(step)).cloned();
    Scope { previous, ..base(draft) }
}

/// For `set` and arcs: the base, the ended visit's output and the boundary event's name.
pub(crate) fn for_exit(
    draft: &Draft<'_, '_>,
    step: &Arc<str>,
    data: Slot,
    failure: Option<&Failure>,
    loops: bool,
) -> Scope {
    let mut scope = base(draft);
    // The ended step is visible under its own name too, before its result is recorded.
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
        Some(Output { data, failure: failure.cloned().map(Arc::new), envelope_first: false });
    scope
}

fn identity(state: &Execution) -> Identity {
    let Some(started) = &state.started else {
        return Identity { execution: state.id, ..Identity::default() };
    };
    Identity {
        execution: state.id,
        catalog: started.catalog,
        path: started.path.clone(),
        version: started.version,
        parent: started.parent,
    }
}
