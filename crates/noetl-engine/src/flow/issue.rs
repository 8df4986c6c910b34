//! Issues commands: a tool, a pipeline, or a control-plane tool.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::event::{CommandSpec, LoopItem, LoopItemRef};
use noetl_model::scope::CommandScope;
use noetl_model::{CommandId, Fact, Failure, Map, Value};
use noetl_playbook::document::{Step, StepWork};
use noetl_playbook::python_names::named_in;
use noetl_playbook::tool::Tool;
use noetl_template::{Scope, exact_json};

use super::split::NextSegment;
use super::{render, timeouts};
use crate::draft::Draft;
use crate::{required_values, slice};

/// Tool kind of a command that holds a pipeline.
pub(crate) const PIPELINE: &str = "task_sequence";

/// Tool kind of a command that runs Python code.
const PYTHON: &str = "python";

/// Rendered parts of a command.
#[derive(Default)]
pub(super) struct Made {
    pub(super) config: Map,
    pub(super) input: Map,
    pub(super) scope: Option<Box<CommandScope>>,
}

/// Parts of a command that are not rendered.
pub(super) struct CommandParts {
    pub(super) kind: Arc<str>,
    pub(super) timeout: Option<Duration>,
    pub(super) idempotent: bool,
}

impl Draft<'_, '_> {
    /// Issues the command of a step run, or of one item. Issues nothing if a template does not
    /// render.
    pub(crate) fn issue(
        &mut self,
        step: &Step,
        work: &StepWork,
        run: u32,
        scope: &Scope,
        item: Option<LoopItem>,
    ) -> Result<(), String> {
        let mut misled = None;
        let (kind, timeout, idempotent) = match work {
            StepWork::Route => return Ok(()),
            StepWork::Split(split) => {
                let next = NextSegment::first(run, item, None, 1);
                return self.issue_segment(step, split, scope, next);
            }
            StepWork::Tool(tool) => (tool.kind.clone(), tool.timeout, tool.idempotent),
            StepWork::Own(own) => {
                let rendered = own
                    .limit
                    .as_ref()
                    .map(|limit| timeouts::resolve_timeout(limit, &step.name, scope));
                let timeout = match rendered {
                    None => own.tool.timeout,
                    Some(Ok(timeout)) => timeout,
                    Some(Err(failure)) => {
                        misled = Some(failure);
                        None
                    }
                };
                (own.tool.kind.clone(), timeout, true)
            }
            StepWork::Pipeline(pipeline) => {
                let idempotent = pipeline.tasks.iter().all(|task| task.tool.idempotent);
                (Arc::from(PIPELINE), None, idempotent)
            }
        };
        let made = match work {
            StepWork::Route | StepWork::Split(_) => Ok(Made::default()),
            StepWork::Tool(tool) => tool_made(tool, scope),
            StepWork::Own(own) => tool_made(&own.tool, scope),
            StepWork::Pipeline(pipeline) => Ok(Made {
                config: object((*pipeline.source).clone()),
                input: Map::new(),
                scope: Some(Box::new(slice::slice_scope(
                    pipeline.mentions(),
                    scope,
                    &self.playbook.keychain,
                ))),
            }),
        };
        if let (StepWork::Tool(tool), false) = (work, scope.reach.needed().is_empty()) {
            let places = required_values::tool_values(tool, self.state, scope.previous.as_ref());
            self.need(places);
        }
        let parts = CommandParts { kind, timeout, idempotent };
        let (id, issued) = self.hand_out(step, run, scope, parts, made, item)?;
        if matches!(work, StepWork::Own(_)) && self.needed.is_empty() {
            self.claim_control_tool(id, &issued, misled);
        }
        Ok(())
    }

    /// Issues a command for a tool other than the step's own: a claim of rows.
    pub(super) fn issue_tool(
        &mut self,
        step: &Step,
        tool: &Tool,
        run: u32,
        scope: &Scope,
        item: LoopItem,
    ) -> Result<(), String> {
        let parts =
            CommandParts { kind: tool.kind.clone(), timeout: tool.timeout, idempotent: true };
        let made = tool_made(tool, scope);
        self.hand_out(step, run, scope, parts, made, Some(item)).map(|_| ())
    }

    /// Issues a whole loop as one command.
    pub(super) fn issue_local(
        &mut self,
        step: &Step,
        run: u32,
        scope: &Scope,
        repeat: Value,
    ) -> Result<(), String> {
        let StepWork::Pipeline(pipeline) = &step.work else { return Ok(()) };
        let mut config = object((*pipeline.source).clone());
        config.insert("loop".to_owned(), repeat);
        let slice = slice::slice_scope(pipeline.mentions(), scope, &self.playbook.keychain);
        let made = Made { config, input: Map::new(), scope: Some(Box::new(slice)) };
        let idempotent = pipeline.tasks.iter().all(|task| task.tool.idempotent);
        let parts = CommandParts { kind: Arc::from(PIPELINE), timeout: None, idempotent };
        self.hand_out(step, run, scope, parts, Ok(made), None).map(|_| ())
    }

    pub(super) fn hand_out(
        &mut self,
        step: &Step,
        run: u32,
        scope: &Scope,
        parts: CommandParts,
        made: Result<Made, String>,
        item: Option<LoopItem>,
    ) -> Result<(CommandId, Arc<CommandSpec>), String> {
        // If a value is missing, the decision is undone, so this command is never recorded. It acts
        // as a placeholder, so that the same attempt finds the values that other branches need.
        let mut made = match self.rendered(scope, made) {
            None => Made::default(),
            Some(made) => made?,
        };
        let CommandParts { kind, timeout, idempotent } = parts;
        if let Some(iteration) = scope.iteration.as_ref().filter(|_| &*kind == PYTHON) {
            let item = || exact_json(&scope.reach.data(&iteration.item));
            made.input.entry(&*iteration.name).or_insert_with(item);
            made.input.entry("_index").or_insert_with(|| iteration.index.into());
            if let Some(total) = iteration.total {
                made.input.entry("_total").or_insert_with(|| total.into());
            }
        }
        let timeout = timeout.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        let issued = Arc::new(CommandSpec {
            step: step.name.clone(),
            run,
            attempt: 1,
            tool: kind,
            config: made.config,
            input: made.input,
            timeout_ms: timeout,
            scope: made.scope,
            item,
            idempotent,
            pool: self.state.pool(),
            trace: self.state.trace(),
        });
        let id = self.record(Fact::CommandIssued(issued.clone()));
        Ok((id.into(), issued))
    }

    /// Completes a command whose result is recorded.
    pub(crate) fn completed(&mut self, command: CommandId, issued: &Arc<CommandSpec>) {
        match issued.split() {
            Some(split) if split.partial => return self.segment_completed(command, issued),
            Some(_) if self.lacks_earlier(command, issued) => return,
            _ => {}
        }
        let step = issued.step.clone();
        match &issued.item {
            None => {
                self.record(Fact::CommandCompleted { command, step, item: None });
                self.exit_done(&issued.step, issued.run);
            }
            Some(item) if item.claims => self.rows_claimed(command, issued, item),
            Some(_) => {
                let item = item_of(issued);
                self.record(Fact::CommandCompleted { command, step, item });
                self.advance_loop(&issued.step, issued.run);
            }
        }
    }

    /// Fails a command, and its step run or item with it.
    pub(crate) fn failed(
        &mut self,
        command: CommandId,
        issued: &Arc<CommandSpec>,
        failure: Failure,
    ) {
        let (step, item) = (issued.step.clone(), item_of(issued));
        self.record(Fact::CommandFailed { command, step, failure: failure.clone(), item });
        match &issued.item {
            None => self.exit_failed(&issued.step, issued.run, failure),
            Some(item) if item.claims => {
                self.exit_loop_failed(&issued.step, issued.run, failure);
            }
            Some(_) => self.item_failed(issued),
        }
    }

    /// Fails the step run or item of a command that expired and is not issued again.
    pub(crate) fn lost(&mut self, issued: &Arc<CommandSpec>, failure: Failure) {
        if issued.item.is_some() {
            // The expiration did not end the item, so the item fails with a command of its own.
            let attempt = issued.attempt + 1;
            let last = Arc::new(CommandSpec { attempt, ..(**issued).clone() });
            let command = self.record(Fact::CommandIssued(last.clone()));
            self.failed(command.into(), &last, failure);
        } else {
            self.exit_failed(&issued.step, issued.run, failure);
        }
    }

    /// Records the `ctx` and `step` variables that a command's tasks set.
    pub(crate) fn write_context(&mut self, issued: &CommandSpec, values: Map, locals: Map) {
        if !values.is_empty() || !locals.is_empty() {
            let (step, run) = (issued.step.clone(), issued.run);
            self.record(Fact::ContextUpdated { step, run, values, locals });
        }
    }
}

/// Returns the loop item that a command runs, for its completion event.
pub(super) fn item_of(issued: &CommandSpec) -> Option<Box<LoopItemRef>> {
    let item = issued.item.as_ref().filter(|item| !item.claims)?;
    let (index, total, frame) = (item.index, item.total, item.frame);
    Some(Box::new(LoopItemRef { run: issued.run, index, total, frame }))
}

fn tool_made(tool: &Tool, scope: &Scope) -> Result<Made, String> {
    let config = object(render::render(&tool.config, scope, "tool")?);
    let input = object(render::render(&tool.input, scope, "tool.input")?);
    let read = match config.get("code").and_then(Value::as_str) {
        Some(code) if &*tool.kind == PYTHON => slice::of_code(&named_in(code), scope),
        _ => None,
    };
    Ok(Made { config, input, scope: read.map(Box::new) })
}

/// Returns the map, or an empty one for another value: the playbook decoder produces only maps
/// here.
pub(super) fn object(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
