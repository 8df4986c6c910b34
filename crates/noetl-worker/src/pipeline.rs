//! Runs the tasks of a pipeline: what a run asks for, done.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use noetl_model::scope::CommandScope;
use noetl_model::{Failure, FailureKind, Map, Value};
use noetl_playbook::pipeline::{Pipeline, PipelineEnd, Run, Turn, scope_of};
use noetl_playbook::template::{Entropy, Identity, Scope};

use crate::call;
use crate::perform::{Command, Performer};
use crate::values::Found;

/// The tasks of a command, ready to run, as often as its loop has items.
pub(crate) struct Sequence<'a> {
    performer: &'a Performer,
    pub(crate) command: &'a Command,
    pipeline: Arc<Pipeline>,
    /// What the command's templates see.
    pub(crate) scope: Scope,
    found: Found<'a>,
}

impl<'a> Sequence<'a> {
    /// Reads what a command carries.
    pub(crate) fn read(performer: &'a Performer, command: &'a Command) -> Result<Self, Failure> {
        let issued = &command.issued;
        let tasks = issued.config.get("tasks").cloned().unwrap_or_default();
        let source = Value::Object(Map::from_iter([("tasks".to_owned(), tasks)]));
        let pipeline = Pipeline::compile(Arc::new(source))
            .map_err(|error| Failure::new(FailureKind::Config, error.to_string()))?;
        let scope = match &issued.scope {
            Some(carried) => scope_of(command.execution, CommandScope::clone(carried)),
            None => Scope {
                identity: Identity { execution: command.execution, ..Identity::default() },
                ..Scope::default()
            },
        };
        Ok(Self {
            performer,
            command,
            pipeline: Arc::new(pipeline),
            scope,
            found: Found::new(&*performer.values),
        })
    }

    /// Runs the tasks once.
    pub(crate) async fn run(&self, scope: Scope) -> PipelineEnd {
        let seed = RandomState::new().build_hasher().finish();
        let scope = Scope { entropy: Entropy::new(seed), ..scope };
        let run = Run::new(self.pipeline.clone(), scope).with_limit(self.performer.task_runs_max);
        self.drive(run).await.unwrap_or_else(cancelled)
    }

    /// Does what a run asks for until it is over; `None` when it is not wanted any more.
    async fn drive(&self, mut run: Run) -> Option<PipelineEnd> {
        let cancel = &self.command.cancel;
        loop {
            if cancel.is_cancelled() {
                return None;
            }
            run.set_now(self.performer.clock.now());
            match run.turn() {
                Turn::Call(task) => {
                    let began = Instant::now();
                    let outcome = call::task(self.performer, self.command, *task).await;
                    let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                    run.answered(outcome, took);
                    // A tool that never waits would keep others from their turn.
                    tokio::task::yield_now().await;
                }
                Turn::Pause { seconds } => tokio::select! {
                    () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => {}
                    () = cancel.cancelled() => return None,
                },
                Turn::Need(places) => {
                    for place in places {
                        let found = self.found.find(&place, cancel).await?;
                        run.supply(&place, found);
                    }
                }
                Turn::Done(end) => return Some(*end),
            }
        }
    }
}

/// The end of a pipeline that was told to stop.
fn cancelled() -> PipelineEnd {
    let failure = Failure::new(FailureKind::Cancelled, "the command was told to stop");
    PipelineEnd { outcome: Err(failure), ctx: Map::new(), iter: Map::new(), step: Map::new() }
}
