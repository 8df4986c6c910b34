//! Checks derived from the arcs: the implicit end, and unreachable steps.

use super::context::Context;
use super::cursor::Cursor;
use crate::document::{RoutingMode, Step};
use crate::graph::Graph;
use crate::graph::StepIx;

/// Returns the step called `end` if it is neither the entry nor the target of any arc. Such a step
/// runs once, after all other steps are done.
pub(super) fn implicit_end(steps: &[Step], end: Option<StepIx>, entry: StepIx) -> Option<StepIx> {
    let end = end.filter(|end| *end != entry)?;
    let mut arcs = steps.iter().flat_map(|step| &step.router.arcs);
    arcs.all(|arc| arc.to != end).then_some(end)
}

/// Warns about unreachable steps. Uses a work list instead of recursion, because a chain of steps
/// may be as long as the document.
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

/// Maximum number of step-arc pairs that [`warn_split`] examines. A larger graph is generated, and
/// hints about it would not be read.
const PAIRS_MAX: usize = 1_000_000;

/// Warns about steps that an inclusive router leads to both directly and through another of its
/// arcs. They run once, after that other branch, which the author may not have intended.
pub(super) fn warn_split(cx: &mut Context<'_>, root: &Cursor<'_>, steps: &[Step], graph: &Graph) {
    let Some(workflow) = root.get("workflow") else { return };
    let items: Vec<Cursor<'_>> = workflow.items().collect();
    let splits =
        |step: &&Step| step.router.mode == RoutingMode::Inclusive && step.router.arcs.len() > 1;
    let mut pairs: usize = 0;
    let mut is_reported = vec![false; steps.len()];
    for step in steps.iter().filter(splits) {
        let arcs = &step.router.arcs;
        for arc in arcs.iter().filter(|arc| graph.is_join(arc.to)) {
            pairs = pairs.saturating_add(steps.len());
            if pairs > PAIRS_MAX {
                return;
            }
            let item = &items[arc.to.index()];
            let through = |other: &crate::document::NextArc| {
                other.to != arc.to && graph.may_reach(other.to, arc.to)
            };
            let ix = arc.to.index();
            if item.key("join").is_some() || is_reported[ix] || !arcs.iter().any(through) {
                continue;
            }
            is_reported[ix] = true;
            let (name, from) = (&steps[ix].name, &step.name);
            let message = format!(
                "step '{name}' is led to by '{from}' at once and by way of another \
                                   of its arcs; it runs once, after that"
            );
            let help = "write 'join: all' if that is meant, 'join: each' to run it for both";
            let at = item.get("step").unwrap_or(*item);
            cx.warning("W110", &at, message, help);
        }
    }
}
