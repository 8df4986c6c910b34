//! Predicts the values a decision will need, from the playbook's text.
//!
//! A step's templates name most of the values they read. The decision itself finds names that are
//! computed during rendering, and the arcs that are taken.

use noetl_playbook::Playbook;
use noetl_playbook::document::{JoinRule, NextArc, OnError, RoutingMode, Step, StepWork};
use noetl_playbook::tool::Tool;
use noetl_template::{
    Guard, Mention, MentionSuffix, Names, Template, ValueRef, ValueSlot, ValueSource,
    ValueTemplate, is_reference,
};

use crate::execution::{Execution, OpenCommand};
use crate::input::{Complete, Input};

/// Returns references to the values that deciding `input` is known to read, so that the caller can
/// load them first.
///
/// The result can lack values, which [`crate::decide`] then requests, and can contain unneeded
/// ones.
pub fn required_values(playbook: &Playbook, state: &Execution, input: &Input) -> Vec<ValueRef> {
    let candidates = match input {
        Input::Complete(input) if input.is_final => completion_values(playbook, state, input),
        Input::Fail(input) => {
            end_values(playbook, state, state.open_command(input.command), None, true)
        }
        Input::Expire(input) => {
            let open = state.open_command(input.command);
            match open.and_then(|open| open.answer.as_ref()) {
                Some(answer) => end_values(playbook, state, open, Some(&answer.slot), false),
                None if open.is_some_and(|open| open.issued.attempt >= input.attempts_max) => {
                    end_values(playbook, state, open, None, true)
                }
                None => failure_value(state),
            }
        }
        Input::Abandon(_) => failure_value(state),
        Input::Complete(_)
        | Input::Start(_)
        | Input::Fork(_)
        | Input::Claim(_)
        | Input::Begin(_)
        | Input::Cancel(_)
        | Input::Keep(_)
        | Input::Wake(_)
        | Input::Answer(_)
        | Input::Timeout(_)
        | Input::Finalize(_) => Vec::new(),
    };
    let mut references: Vec<ValueRef> = Vec::new();
    for reference in candidates {
        if !references.iter().any(|known| known.is_same(&reference)) {
            references.push(reference);
        }
    }
    references
}

fn completion_values(playbook: &Playbook, state: &Execution, input: &Complete) -> Vec<ValueRef> {
    let Some(open) = state.open_command(input.command) else { return Vec::new() };
    let own = match (&open.answer, &input.reference) {
        (Some(answer), _) => Some(answer.slot.clone()),
        (None, Some(reference)) => {
            let fields = input.data.as_ref().map(noetl_template::from_json);
            let fields = fields.unwrap_or_default();
            Some(ValueSlot::away(ValueSource::Blob { reference: reference.clone(), fields }))
        }
        // The data comes with the input.
        (None, None) => None,
    };
    end_values(playbook, state, Some(open), own.as_ref(), false)
}

/// Returns the values that the end of a command reads. `own` refers to the command's data, unless
/// the data is in memory.
fn end_values(
    playbook: &Playbook,
    state: &Execution,
    open: Option<&OpenCommand>,
    own: Option<&ValueSlot>,
    failed: bool,
) -> Vec<ValueRef> {
    if state.is_failing() {
        return failure_value(state);
    }
    if let Some(open) = open.filter(|open| open.issued.item.is_some()) {
        return next_item_values(state, open);
    }
    let ix = open.and_then(|open| playbook.find(&open.issued.step));
    let Some(step) = ix.map(|ix| playbook.step(ix)) else { return Vec::new() };
    let mut references = exit_values(step, state, own, failed);
    for index in constant_true_arcs(step, failed) {
        let to = step.router.arcs[index].to;
        let target = playbook.step(to);
        // A join may continue to wait.
        let starts = target.join != JoinRule::All || !playbook.graph.is_join(to);
        if let (true, StepWork::Tool(tool)) = (starts, &target.work) {
            let hidden = Some((&*step.name, own));
            let names = NameResolver { state, own: hidden, output: None, previous: own };
            names.tool(tool, &mut references);
        }
    }
    if step.router.arcs.is_empty() && state.commands.len() == 1 {
        // This may be the last command, and its data the execution's result.
        references.extend(own.into_iter().flat_map(ValueSlot::places).filter(is_event));
    }
    references
}

/// Returns the references of the items that a loop issues next.
fn next_item_values(state: &Execution, open: &OpenCommand) -> Vec<ValueRef> {
    let step_run_key = (open.issued.step.clone(), open.issued.run);
    let Some(repeat) = state.loops.get(&step_run_key) else { return Vec::new() };
    let next = repeat.spans.values().filter(|span| span.next < span.rows);
    let chunks = next.filter_map(|span| repeat.place_of(span.first + span.next));
    chunks.flat_map(|(chunk, _)| chunk.places()).collect()
}

fn is_event(reference: &ValueRef) -> bool {
    matches!(reference, ValueRef::Event { .. })
}

/// Returns the reference of the failure with which an execution ends when its last command ends.
fn failure_value(state: &Execution) -> Vec<ValueRef> {
    let failure_value = state.failing.as_ref().filter(|_| state.is_failing());
    failure_value.and_then(|failure_value| failure_value.failure.place()).into_iter().collect()
}

/// Returns the indexes of the arcs that are taken whatever the values are.
fn constant_true_arcs(step: &Step, failed: bool) -> Vec<usize> {
    let mut arcs = Vec::new();
    for (index, arrow) in step.router.arcs.iter().enumerate() {
        let goes_on = !failed || step.on_error == OnError::Continue;
        if !is_considered(arrow, failed, goes_on) {
            continue;
        }
        match (&arrow.when, step.router.mode) {
            (Guard::Constant(false), _) | (Guard::Template(_), RoutingMode::Inclusive) => {}
            (Guard::Constant(true), RoutingMode::Inclusive) => arcs.push(index),
            (Guard::Constant(true), RoutingMode::Exclusive) => {
                arcs.push(index);
                break;
            }
            // The remaining arcs depend on this condition.
            (Guard::Template(_), RoutingMode::Exclusive) => break,
        }
    }
    arcs
}

/// Returns the values that leaving a step reads: those of its `set` and of the conditions to
/// evaluate. `own` refers to the step's data, unless the data is in memory.
pub(crate) fn exit_values(
    step: &Step,
    state: &Execution,
    own: Option<&ValueSlot>,
    failed: bool,
) -> Vec<ValueRef> {
    // Templates read a failed step as its failure, which is in memory.
    let visible = if failed { None } else { own };
    let own_name = Some((&*step.name, visible));
    let names = NameResolver { state, own: own_name, output: visible, previous: None };
    let mut references = Vec::new();
    let goes_on = !failed || step.on_error == OnError::Continue;
    if goes_on {
        for assignment in &step.set {
            names.value(&assignment.value, &mut references);
        }
    }
    for arrow in step.router.arcs.iter().filter(|arrow| is_considered(arrow, failed, goes_on)) {
        if let Some(template) = arrow.when.template() {
            names.template(template, &mut references);
        }
    }
    references
}

/// Returns the values that a tool's settings and input read.
pub(crate) fn tool_values(
    tool: &Tool,
    state: &Execution,
    previous: Option<&ValueSlot>,
) -> Vec<ValueRef> {
    let mut references = Vec::new();
    NameResolver { state, own: None, output: None, previous }.tool(tool, &mut references);
    references
}

/// Resolves the names of a template to value references.
struct NameResolver<'a> {
    state: &'a Execution,
    /// Step that ends, which hides its earlier result. Without a slot, its data is in memory.
    own: Option<(&'a str, Option<&'a ValueSlot>)>,
    output: Option<&'a ValueSlot>,
    previous: Option<&'a ValueSlot>,
}

impl NameResolver<'_> {
    fn tool(&self, tool: &Tool, references: &mut Vec<ValueRef>) {
        self.value(&tool.config, references);
        self.value(&tool.input, references);
    }

    fn value(&self, value: &ValueTemplate, references: &mut Vec<ValueRef>) {
        for template in value.templates() {
            self.template(template, references);
        }
    }

    fn template(&self, template: &Template, references: &mut Vec<ValueRef>) {
        for mention in template.mentions() {
            self.mention(mention, references);
        }
    }

    fn mention(&self, mention: &Mention, references: &mut Vec<ValueRef>) {
        let (workload, ctx) = (&self.state.workload, &self.state.ctx);
        match (&*mention.name, &mention.next) {
            ("workload", MentionSuffix::Key(key)) => add_slot(workload.get(key), None, references),
            ("workload", MentionSuffix::Nothing) => add_all(&workload.names, references),
            ("ctx", MentionSuffix::Key(key)) => {
                add_slot(ctx.get(key).or(workload.get(key)), None, references)
            }
            ("ctx", MentionSuffix::Nothing) => add_all(&ctx.names, references),
            // The template may read only part of the value. A blob is large, and the template may
            // need only its name: the decision requests the blob if it needs more.
            ("steps", MentionSuffix::Key(step)) => {
                let result = self.result(step).into_iter();
                references.extend(result.flat_map(ValueSlot::places).filter(is_event));
            }
            ("output" | "outcome", next) => add_slot(self.output, Some(next), references),
            // The key is computed, or there may be very many values.
            ("workload" | "ctx" | "steps" | "step" | "event", _) => {}
            (name, next) => {
                if let Some(slot) = ctx.get(name) {
                    add_slot(Some(slot), None, references);
                } else if self.has_result(name) {
                    add_slot(self.result(name), Some(next), references);
                } else if let Some(slot) = workload.get(name) {
                    add_slot(Some(slot), None, references);
                } else if name == "result" {
                    add_slot(self.output.or(self.previous), Some(next), references);
                }
            }
        }
    }

    fn has_result(&self, step: &str) -> bool {
        self.own.is_some_and(|(own, _)| own == step) || self.state.results.get(step).is_some()
    }

    fn result(&self, step: &str) -> Option<&ValueSlot> {
        match self.own {
            Some((own, slot)) if own == step => slot,
            _ => self.state.results.get(step),
        }
    }
}

/// Adds the references of a slot, unless the following key is known without loading it.
fn add_slot(
    slot: Option<&ValueSlot>,
    next: Option<&MentionSuffix>,
    references: &mut Vec<ValueRef>,
) {
    let Some(slot) = slot else { return };
    if let Some(MentionSuffix::Key(key)) = next
        && (slot.known_field(key).is_some() || is_reference(slot, key))
    {
        return;
    }
    references.extend(slot.places());
}

fn add_all(names: &Names, references: &mut Vec<ValueRef>) {
    references.extend(names.values().flat_map(ValueSlot::places));
}

/// Returns `true` if the engine evaluates an arc's condition after this outcome.
pub(crate) fn is_considered(arrow: &NextArc, failed: bool, goes_on: bool) -> bool {
    if failed { arrow.on_failure || (goes_on && arrow.on_success) } else { arrow.on_success }
}
