//! Runs all iterations of a loop on this worker, within one command.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt;
use noetl_model::{Failure, FailureKind, Map, Value};
use noetl_playbook::pipeline::{PipelineEnd, loop_result, note, write};
use noetl_template::{Iteration, Scope, from_json_owned};
use noetl_work::CommandOutcome;
use serde::Deserialize;

use crate::pipeline::CompiledPipeline;

/// Iterations in flight at a time if the loop sets no `max_in_flight`.
const IN_FLIGHT: usize = 64;

/// Loop settings as encoded in a command.
#[derive(Deserialize)]
struct LoopSettings {
    items: Vec<Value>,
    iterator: Arc<str>,
    #[serde(default)]
    mode: LoopMode,
    #[serde(default)]
    max_in_flight: Option<usize>,
    #[serde(default)]
    failure: OnFailure,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum LoopMode {
    #[default]
    Sequential,
    Parallel,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum OnFailure {
    #[default]
    FailFast,
    BestEffort,
}

/// Runs the tasks once per item.
pub(crate) async fn run(sequence: CompiledPipeline<'_>, settings: &Value) -> CommandOutcome {
    let settings = match LoopSettings::deserialize(settings) {
        Ok(settings) => settings,
        Err(error) => {
            let message = format!("the loop is not in the form commands carry: {error}");
            return Err(Failure::new(FailureKind::Config, message)).into();
        }
    };
    let failure_mode = settings.failure;
    let cancel = sequence.command.cancel.clone();
    let (outcomes, Writes { ctx, step }) = match settings.mode {
        LoopMode::Sequential => in_a_row(sequence, settings).await,
        LoopMode::Parallel => side_by_side(&sequence, settings).await,
    };
    if cancel.is_cancelled() {
        let message = "the command was told to stop";
        return Err(Failure::new(FailureKind::Cancelled, message)).into();
    }
    let failed = outcomes.iter().enumerate().find_map(|(index, outcome)| match outcome {
        Some(Err(failure)) => {
            let mut failure = failure.clone().with_detail("index", index);
            failure.message = format!("item {index}: {}", failure.message);
            Some(failure)
        }
        _ => None,
    });
    let outcome = match (failure_mode, failed) {
        (OnFailure::FailFast, Some(failure)) => Err(failure),
        _ => Ok(loop_result(outcomes)),
    };
    CommandOutcome { outcome, ctx, step }
}

/// Outcome of each item (`None` if it did not run), and the variables set by all of them.
type Outcomes = (Vec<Option<Result<Value, Failure>>>, Writes);

/// Variables that outlive an iteration.
#[derive(Default)]
struct Writes {
    ctx: Map,
    step: Map,
}

/// Runs the items sequentially. Each item sees the variables set by earlier ones.
async fn in_a_row(mut sequence: CompiledPipeline<'_>, settings: LoopSettings) -> Outcomes {
    let (total, mut writes) = (settings.items.len(), Writes::default());
    let mut outcomes = Vec::with_capacity(total);
    let mut stopped = false;
    for (index, item) in settings.items.into_iter().enumerate() {
        if stopped || sequence.command.cancel.is_cancelled() {
            outcomes.push(None);
            continue;
        }
        let scope = scope_of(&sequence.scope, &settings.iterator, item, index, total);
        let end = sequence.run(scope).await;
        for (path, value) in &end.ctx {
            write(Arc::make_mut(&mut sequence.scope.ctx), &names(path), value);
        }
        for (path, value) in &end.step {
            write(Arc::make_mut(&mut sequence.scope.step), &names(path), value);
        }
        stopped = settings.failure == OnFailure::FailFast && end.outcome.is_err();
        outcomes.push(Some(item_result(end, &mut writes)));
    }
    (outcomes, writes)
}

/// Runs up to `max_in_flight` items at a time. No item sees the variables another sets. Writes
/// apply in item order, so the last item wins.
async fn side_by_side(sequence: &CompiledPipeline<'_>, settings: LoopSettings) -> Outcomes {
    let total = settings.items.len();
    let at_a_time = settings.max_in_flight.unwrap_or(IN_FLIGHT).max(1);
    let stopped = &AtomicBool::new(false);
    let iterator = &settings.iterator;
    let one = |(index, item): (usize, Value)| async move {
        if stopped.load(Ordering::Relaxed) || sequence.command.cancel.is_cancelled() {
            return (index, None);
        }
        let scope = scope_of(&sequence.scope, iterator, item, index, total);
        let end = sequence.run(scope).await;
        if end.outcome.is_err() && settings.failure == OnFailure::FailFast {
            stopped.store(true, Ordering::Relaxed);
        }
        (index, Some(end))
    };
    let items = settings.items.into_iter().enumerate();
    let mut ends: Vec<Option<PipelineEnd>> = (0..total).map(|_| None).collect();
    let mut running =
        std::pin::pin!(futures::stream::iter(items).map(one).buffer_unordered(at_a_time));
    while let Some((index, end)) = running.next().await {
        ends[index] = end;
    }
    let mut writes = Writes::default();
    let outcomes =
        ends.into_iter().map(|end| end.map(|end| item_result(end, &mut writes))).collect();
    (outcomes, writes)
}

/// Returns an iteration's outcome and adds its writes after those of earlier items.
fn item_result(end: PipelineEnd, writes: &mut Writes) -> Result<Value, Failure> {
    for (path, value) in end.ctx {
        note(&mut writes.ctx, &names(&path), value);
    }
    for (path, value) in end.step {
        note(&mut writes.step, &names(&path), value);
    }
    end.outcome
}

fn scope_of(base: &Scope, name: &Arc<str>, item: Value, index: usize, total: usize) -> Scope {
    let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
    Scope {
        iteration: Some(Iteration {
            name: name.clone(),
            item: from_json_owned(item).into(),
            index: count(index),
            total: Some(count(total)),
            vars: Arc::default(),
        }),
        ..base.clone()
    }
}

fn names(path: &str) -> Vec<String> {
    path.split('.').map(str::to_owned).collect()
}
