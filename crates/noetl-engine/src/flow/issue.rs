//! Issues commands: a tool, a pipeline, or a control-plane tool.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::event::{Issued, ItemOf, LoopItem};
use noetl_model::scope::CommandScope;
use noetl_model::{CommandId, Fact, Failure, Map, Value};
use noetl_playbook::document::{Step, Tool, Work};
use noetl_playbook::python_names::named_in;
use noetl_playbook::template::{Scope, exact_json};

use super::split::Next;
use super::{limit, named};
use crate::decide::Draft;
use crate::{places, slice};

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
pub(super) struct Parts {
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
        work: &Work,
        generation: u32,
        scope: &Scope,
        item: Option<LoopItem>,
    ) -> Result<(), String> {
        let mut misled = None;
        let (kind, timeout, idempotent) = match work {
            Work::Route => return Ok(()),
            Work::Split(split) => {
                let next = Next::first(generation, item, None, 1);
                return self.issue_segment(step, split, scope, next);
            }
            Work::Tool(tool) => (tool.kind.clone(), tool.timeout, tool.idempotent),
            Work::Own(own) => {
                let rendered = own.limit.as_ref().map(|limit| limit::of(limit, &step.name, scope));
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
            Work::Pipeline(pipeline) => {
                let idempotent = pipeline.tasks.iter().all(|task| task.tool.idempotent);
                (Arc::from(PIPELINE), None, idempotent)
            }
        };
        let made = match work {
            Work::Route | Work::Split(_) => Ok(Made::default()),
            Work::Tool(tool) => tool_made(tool, scope),
            Work::Own(own) => tool_made(&own.tool, scope),
            Work::Pipeline(pipeline) => Ok(Made {
                config: object((*pipeline.source).clone()),
                input: Map::new(),
                scope: Some(Box::new(slice::of(
                    pipeline.mentions(),
                    scope,
                    &self.playbook.keychain,
                ))),
            }),
        };
        if let (Work::Tool(tool), false) = (work, scope.reach.needed().is_empty()) {
            let places = places::of_tool(tool, self.state, scope.previous.as_ref());
            self.need(places);
        }
        let parts = Parts { kind, timeout, idempotent };
        let (id, issued) = self.hand_out(step, generation, scope, parts, made, item)?;
        if matches!(work, Work::Own(_)) && self.needed.is_empty() {
            self.hold_own(id, &issued, misled);
        }
        Ok(())
    }

    /// Issues a command for a tool other than the step's own: a claim of rows.
    pub(super) fn issue_tool(
        &mut self,
        step: &Step,
        tool: &Tool,
        generation: u32,
        scope: &Scope,
        item: LoopItem,
    ) -> Result<(), String> {
        let parts = Parts { kind: tool.kind.clone(), timeout: tool.timeout, idempotent: true };
        let made = tool_made(tool, scope);
        self.hand_out(step, generation, scope, parts, made, Some(item)).map(|_| ())
    }

    /// Issues a whole loop as one command.
    pub(super) fn issue_local(
        &mut self,
        step: &Step,
        generation: u32,
        scope: &Scope,
        repeat: Value,
    ) -> Result<(), String> {
        let Work::Pipeline(pipeline) = &step.work else { return Ok(()) };
        let mut config = object((*pipeline.source).clone());
        config.insert("loop".to_owned(), repeat);
        let slice = slice::of(pipeline.mentions(), scope, &self.playbook.keychain);
        let made = Made { config, input: Map::new(), scope: Some(Box::new(slice)) };
        let idempotent = pipeline.tasks.iter().all(|task| task.tool.idempotent);
        let parts = Parts { kind: Arc::from(PIPELINE), timeout: None, idempotent };
        self.hand_out(step, generation, scope, parts, Ok(made), None).map(|_| ())
    }

    pub(super) fn hand_out(
        &mut self,
        step: &Step,
        generation: u32,
        scope: &Scope,
        parts: Parts,
        made: Result<Made, String>,
        item: Option<LoopItem>,
    ) -> Result<(CommandId, Arc<Issued>), String> {
        // If a value is missing, the decision is undone, so this command is never recorded. It acts
        // as a placeholder, so that the same attempt finds the values that other branches need.
        let mut made = match self.rendered(scope, made) {
            None => Made::default(),
            Some(made) => made?,
        };
        let Parts { kind, timeout, idempotent } = parts;
        if let Some(iteration) = scope.iteration.as_ref().filter(|_| &*kind == PYTHON) {
            let item = || exact_json(&scope.reach.data(&iteration.item));
            made.input.entry(&*iteration.name).or_insert_with(item);
            made.input.entry("_index").or_insert_with(|| iteration.index.into());
            if let Some(total) = iteration.total {
                made.input.entry("_total").or_insert_with(|| total.into());
            }
        }
        let timeout = timeout.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        let issued = Arc::new(Issued {
            step: step.name.clone(),
            generation,
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
    pub(crate) fn completed(&mut self, command: CommandId, issued: &Arc<Issued>) {
        match issued.split() {
            Some(split) if split.partial => return self.segment_completed(command, issued),
            Some(_) if self.lacks_earlier(command, issued) => return,
            _ => {}
        }
        let step = issued.step.clone();
        match &issued.item {
            None => {
                self.record(Fact::CommandCompleted { command, step, item: None });
                self.exit_done(&issued.step, issued.generation);
            }
            Some(item) if item.claims => self.rows_claimed(command, issued, item),
            Some(_) => {
                let item = item_of(issued);
                self.record(Fact::CommandCompleted { command, step, item });
                self.advance_loop(&issued.step, issued.generation);
            }
        }
    }

    /// Fails a command, and its step run or item with it.
    pub(crate) fn failed(&mut self, command: CommandId, issued: &Arc<Issued>, failure: Failure) {
        let (step, item) = (issued.step.clone(), item_of(issued));
        self.record(Fact::CommandFailed { command, step, failure: failure.clone(), item });
        match &issued.item {
            None => self.exit_failed(&issued.step, issued.generation, failure),
            Some(item) if item.claims => {
                self.exit_loop_failed(&issued.step, issued.generation, failure);
            }
            Some(_) => self.item_failed(issued),
        }
    }

    /// Fails the step run or item of a command that expired and is not issued again.
    pub(crate) fn lost(&mut self, issued: &Arc<Issued>, failure: Failure) {
        if issued.item.is_some() {
            // The expiration did not end the item, so the item fails with a command of its own.
            let attempt = issued.attempt + 1;
            let last = Arc::new(Issued { attempt, ..(**issued).clone() });
            let command = self.record(Fact::CommandIssued(last.clone()));
            self.failed(command.into(), &last, failure);
        } else {
            self.exit_failed(&issued.step, issued.generation, failure);
        }
    }

    /// Records the `ctx` and `step` variables that a command's tasks set.
    pub(crate) fn write_context(&mut self, issued: &Issued, values: Map, locals: Map) {
        if !values.is_empty() || !locals.is_empty() {
            let (step, generation) = (issued.step.clone(), issued.generation);
            self.record(Fact::ContextUpdated { step, generation, values, locals });
        }
    }
}

/// Returns the loop item that a command runs, for its completion event.
pub(super) fn item_of(issued: &Issued) -> Option<Box<ItemOf>> {
    let item = issued.item.as_ref().filter(|item| !item.claims)?;
    let (index, total, frame) = (item.index, item.total, item.frame);
    Some(Box::new(ItemOf { generation: issued.generation, index, total, frame }))
}

fn tool_made(tool: &Tool, scope: &Scope) -> Result<Made, String> {
    let config = object(named::render(&tool.config, scope, "tool")?);
    let input = object(named::render(&tool.input, scope, "tool.input")?);
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
