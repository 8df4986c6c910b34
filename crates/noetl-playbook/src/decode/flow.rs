//! What follows from the arcs: the implicit end, and steps that nothing leads to.

use super::context::Context;
use super::cursor::Cursor;
use crate::document::{Step, StepIx};

/// The step called `end`, when it is neither the entry nor the target of any arc. Such a step runs
/// once when everything else is done.
pub(super) fn implicit_end(steps: &[Step], end: Option<StepIx>, entry: StepIx) -> Option<StepIx> {
    let end = end.filter(|end| *end != entry)?;
    let mut arcs = steps.iter().flat_map(|step| &step.router.arcs);
    arcs.all(|arc| arc.to != end).then_some(end)
}

/// Warns about steps that no path leads to. A work list instead of recursion: a chain of steps may
/// be as long as the document.
pub(super) fn warn_unreachable(
    cx: &mut Context<'_>,
    workflow: &Cursor<'_>,
    steps: &[Step],
    starts: impl IntoIterator<Item = StepIx>,
) {
    let mut reached = vec![false; steps.len()];
    let mut open: Vec<StepIx> = starts.into_iter().collect();
    while let Some(ix) = open.pop() {
        if !std::mem::replace(&mut reached[ix.index()], true) {
            open.extend(steps[ix.index()].router.arcs.iter().map(|arc| arc.to));
        }
    }
    for ((item, step), reached) in workflow.items().zip(steps).zip(reached) {
        if let (false, Some(name)) = (reached, item.get("step")) {
            let message = format!("no path leads to step '{}'", step.name);
            cx.warning("W103", &name, message, "lead an arc to it, or remove it");
        }
    }
}
