//! Drives a pipeline run: calls tools, pauses, and supplies the values and secrets it requests.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use noetl_model::scope::{CommandScope, TaskResult};
use noetl_model::{Failure, FailureKind, Map, Value};
use noetl_playbook::pipeline::{Pipeline, PipelineEnd, PipelineRequest, PipelineRun, scope_of};
use noetl_template::{Entropy, ExecutionIdentity, Scope};

use crate::executor::CommandExecutor;
use crate::keychain::CommandKeychain;
use crate::secrets::CommandSecrets;
use crate::task::{CommandTask, cancelled};
use crate::values::CommandValues;
use crate::{call, split};

/// Keychain of a command without entries.
static NO_ENTRIES: LazyLock<Map> = LazyLock::new(Map::new);

/// The tasks of a command, ready to run once per item of its loop.
pub(crate) struct CompiledPipeline<'a> {
    performer: &'a CommandExecutor,
    pub(crate) command: &'a CommandTask,
    pipeline: Arc<Pipeline>,
    /// Scope of the command's templates.
    pub(crate) scope: Scope,
    command_values: CommandValues<'a>,
    secrets: CommandSecrets,
    keychain: CommandKeychain<'a>,
    /// Results of earlier segments, for a segment of a split pipeline.
    segment: Option<(Vec<TaskResult>, bool)>,
}

impl<'a> CompiledPipeline<'a> {
    /// Compiles the tasks of a command and builds their scope.
    pub(crate) fn read(
        performer: &'a CommandExecutor,
        command: &'a CommandTask,
    ) -> Result<Self, Failure> {
        let issued = &command.issued;
        let tasks = issued.config.get("tasks").cloned().unwrap_or_default();
        let source = Value::Object(Map::from_iter([("tasks".to_owned(), tasks)]));
        let pipeline = Pipeline::compile(Arc::new(source))
            .map_err(|error| Failure::new(FailureKind::Config, error.to_string()))?;
        let scope = match &issued.scope {
            Some(carried) => scope_of(command.execution, CommandScope::clone(carried)),
            None => Scope {
                keychain: Some(Arc::default()),
                identity: ExecutionIdentity {
                    execution: command.execution,
                    ..ExecutionIdentity::default()
                },
                ..Scope::default()
            },
        };
        let secrets = CommandSecrets::new(performer, command);
        let entries = issued.scope.as_ref().map_or(&*NO_ENTRIES, |scope| &scope.keychain);
        let keychain = CommandKeychain::new(performer, command, secrets.clone(), entries);
        Ok(Self {
            performer,
            command,
            pipeline: Arc::new(pipeline),
            scope,
            command_values: CommandValues::new(&*performer.values),
            secrets,
            keychain,
            segment: None,
        })
    }

    /// Reads the results of earlier segments. Returns `None` if the command is cancelled meanwhile.
    pub(crate) async fn with_earlier(mut self) -> Option<Result<Self, Failure>> {
        let Some(split) = self.command.issued.split() else { return Some(Ok(self)) };
        let earlier = split::earlier(self.command, split, &self.command_values).await?;
        Some(earlier.map(|tasks| {
            self.segment = Some((tasks, split.partial));
            self
        }))
    }

    pub(crate) async fn run(&self, scope: Scope) -> PipelineEnd {
        let seed = RandomState::new().build_hasher().finish();
        let scope = Scope { entropy: Entropy::new(seed), ..scope };
        let secrets = self.secrets.clone();
        let mut run = PipelineRun::new(self.pipeline.clone(), scope)
            .with_limit(self.performer.task_runs_max)
            .with_write_check(move |written| secrets.forbids(written));
        if let Some((earlier, partial)) = &self.segment {
            run = run.with_segment(earlier.clone(), *partial);
        }
        self.drive(run).await.unwrap_or_else(cancelled)
    }

    /// Serves the requests of a run until it is done. Returns `None` if the command is cancelled.
    async fn drive(&self, mut run: PipelineRun) -> Option<PipelineEnd> {
        let cancel = &self.command.cancel;
        loop {
            if cancel.is_cancelled() {
                return None;
            }
            run.set_now(self.performer.clock.now());
            match run.turn() {
                PipelineRequest::Call(task) => {
                    let began = Instant::now();
                    let outcome =
                        call::task(self.performer, self.command, &self.secrets, *task).await;
                    if outcome.as_ref().is_err_and(|failure| failure.kind == FailureKind::Auth) {
                        // The secret may have expired. If the task is retried, the keychain fetches
                        // it again.
                        self.keychain.forget();
                        run.forget_secrets();
                    }
                    let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                    run.answered(outcome, took);
                    // A tool that never awaits would starve other tasks.
                    tokio::task::yield_now().await;
                }
                PipelineRequest::Pause { seconds } => tokio::select! {
                    () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => {}
                    () = cancel.cancelled() => return None,
                },
                PipelineRequest::Need(places) => {
                    for place in places {
                        let value = self.command_values.find(&place, cancel).await?;
                        run.supply(&place, value);
                    }
                }
                PipelineRequest::Secrets(names) => {
                    for name in names {
                        let secret =
                            self.keychain.find(&name, &self.scope, &self.command_values).await;
                        let is_missing = secret.is_err();
                        run.secret(name, secret);
                        if is_missing {
                            break;
                        }
                    }
                }
                PipelineRequest::Done(end) => return Some(*end),
            }
        }
    }
}
