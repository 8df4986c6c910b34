//! What a template of this execution can see.

use std::sync::Arc;

use noetl_model::Failure;
use noetl_playbook::Playbook;
use noetl_playbook::template::{Data, Identity, Output, Scope, from_json};

use crate::decide::Moment;
use crate::execution::Execution;

/// The parts every template sees.
pub(crate) fn base(playbook: &Playbook, state: &Execution, moment: &Moment<'_>) -> Scope {
    Scope {
        workload: state.workload.clone(),
        ctx: state.ctx.clone(),
        results: state.results.clone(),
        spec: playbook.spec.as_ref().map(from_json),
        identity: identity(state),
        env: moment.env.clone(),
        now: moment.now,
        entropy: moment.entropy.clone(),
        ..Scope::default()
    }
}

/// For a tool's settings: the base, and the data of the step that led here as `result`.
pub(crate) fn for_tool(
    playbook: &Playbook,
    state: &Execution,
    moment: &Moment<'_>,
    previous: Option<&str>,
) -> Scope {
    let previous = previous.and_then(|step| state.results.get(step)).cloned();
    Scope { previous, ..base(playbook, state, moment) }
}

/// For `set` and arcs: the base, the ended visit's output and the boundary event's name.
pub(crate) fn for_exit(
    playbook: &Playbook,
    state: &Execution,
    moment: &Moment<'_>,
    step: &Arc<str>,
    data: Data,
    failure: Option<&Failure>,
) -> Scope {
    let mut scope = base(playbook, state, moment);
    // The ended step is visible under its own name too, before its result is recorded.
    let own = match failure {
        Some(failure) => crate::apply::failed_result(failure),
        None => data.clone(),
    };
    scope.own = Some((step.clone(), own));
    scope.event = Some(if failure.is_some() { "step.failed" } else { "step.done" });
    scope.output = Some(Output { data, failure: failure.cloned().map(Arc::new) });
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
