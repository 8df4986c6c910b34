//! Pipelines that call playbooks: checks of references across a call, and the segments between
//! calls.

use std::collections::BTreeSet;
use std::sync::Arc;

use noetl_template::{Mention, MentionSuffix};
use serde_json::json;

use super::context::Context;
use super::cursor::Cursor;
use super::task::DecodedTask;
use super::tool::{self, Decoded, Defaults};
use crate::assignment::SetScope;
use crate::diagnostic::SourcePos;
use crate::document::{PlaybookCall, Segment, Split, StepWork};
use crate::pipeline::Pipeline;

/// Maximum number of calls in a pipeline. Each segment carries the results of all earlier ones, so
/// many calls would copy them many times.
const CALLS_MAX: usize = 8;

const OWN_STEP: &str = "move the call to a step of its own";

/// Jumps and local assignments of a task, with their positions.
#[derive(Debug, Default)]
pub(super) struct Crossings {
    jumps: Vec<Jump>,
    sets: Vec<LocalSet>,
}

#[derive(Debug)]
struct Jump {
    /// Label of the target. `None` for the previous task.
    to: Option<String>,
    at: (SourcePos, String),
}

#[derive(Debug)]
struct LocalSet {
    scope: SetScope,
    path: Vec<String>,
    at: (SourcePos, String),
}

impl Crossings {
    pub(super) fn note_jump(&mut self, to: Option<String>, at: &Cursor<'_>) {
        self.jumps.push(Jump { to, at: (at.node.at, at.path.to_string()) });
    }

    pub(super) fn note_set(&mut self, scope: SetScope, path: &[String], at: &Cursor<'_>) {
        let at = (at.node.at, at.path.to_string());
        self.sets.push(LocalSet { scope, path: path.to_vec(), at });
    }

    pub(super) fn clear(&mut self) {
        self.jumps.clear();
        self.sets.clear();
    }

    pub(super) fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

/// Reports jumps and variables that cross a call. `crossings` has an element for each task.
pub(super) fn check(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    tasks: &[DecodedTask],
    crossings: &[Crossings],
) {
    if tasks.len() < 2 {
        return;
    }
    let calls = tasks.iter().filter(|task| task.own.is_some()).count();
    if calls == 0 {
        return;
    }
    if calls > CALLS_MAX {
        let message = format!("the pipeline calls {calls} playbooks, more than {CALLS_MAX}");
        cx.error("E018", at, message, "move some of the calls to steps of their own");
    }
    let segments = segments_of(tasks);
    let mentions: Vec<BTreeSet<Mention>> = match crossings.iter().any(|of| !of.sets.is_empty()) {
        true => tasks.iter().map(DecodedTask::mentions).collect(),
        false => Vec::new(),
    };
    for (index, of) in crossings.iter().enumerate() {
        for jump in &of.jumps {
            check_jump(cx, tasks, &segments, index, jump);
        }
        for set in &of.sets {
            check_set(cx, tasks, (&segments, &mentions), index, set);
        }
    }
}

/// Returns the segment index of each task.
fn segments_of(tasks: &[DecodedTask]) -> Vec<usize> {
    let mut segments = Vec::with_capacity(tasks.len());
    let mut segment = 0;
    for (index, task) in tasks.iter().enumerate() {
        let after_call = index > 0 && tasks[index - 1].own.is_some();
        if index > 0 && (task.own.is_some() || after_call) {
            segment += 1;
        }
        segments.push(segment);
    }
    segments
}

fn check_jump(
    cx: &mut Context<'_>,
    tasks: &[DecodedTask],
    segments: &[usize],
    from: usize,
    jump: &Jump,
) {
    let to = match &jump.to {
        Some(label) => tasks.iter().position(|task| *task.label == **label),
        None => from.checked_sub(1),
    };
    let Some(to) = to else { return };
    let source = &tasks[from];
    if segments[from] == segments[to] && source.own.is_none() {
        return;
    }
    let message = if from == to {
        format!("the jump of {} leads to the call itself", described(source))
    } else {
        let (source, target) = (described(source), described(&tasks[to]));
        match call_between(tasks, from, to) {
            Some(call) => format!("the jump from {source} to {target} crosses {call}"),
            None => format!("the jump from {source} to {target} crosses the call"),
        }
    };
    let help = match from == to {
        true => "write 'do: retry'".to_owned(),
        false => format!("{OWN_STEP} and lead an arc back, or jump within one side of the call"),
    };
    cx.findings.error("E018", jump.at.0, &jump.at.1, message, help);
}

/// Formats a task for a message.
fn described(task: &DecodedTask) -> String {
    let kind = if task.own.is_some() { "playbook call" } else { "task" };
    format!("{kind} '{}'", task.label)
}

/// Returns the first call between two tasks, or `None` if one of the two is a call itself.
fn call_between(tasks: &[DecodedTask], from: usize, to: usize) -> Option<String> {
    if tasks[from].own.is_some() || tasks[to].own.is_some() {
        return None;
    }
    let mut between = tasks[from.min(to)..from.max(to)].iter();
    between.find(|task| task.own.is_some()).map(described)
}

fn check_set(
    cx: &mut Context<'_>,
    tasks: &[DecodedTask],
    (segments, mentions): (&[usize], &[BTreeSet<Mention>]),
    from: usize,
    set: &LocalSet,
) {
    let is_call = tasks[from].own.is_some();
    let later = tasks
        .iter()
        .enumerate()
        .filter(|(index, _)| segments[*index] > segments[from] || (is_call && *index == from));
    let name = format!("{}.{}", set.scope.as_str(), set.path.join("."));
    let mut readers = later.filter(|(index, _)| reads(&mentions[*index], set));
    let Some((to, reader)) = readers.next() else { return };
    let (setter, reader) = (described(&tasks[from]), described(reader));
    let message = match call_between(tasks, from, to) {
        _ if to == from => format!("'{name}' is set and read by {setter}"),
        Some(call) => format!("'{name}' is set by {setter} and read by {reader}, across {call}"),
        None => format!("'{name}' is set by {setter} and read by {reader}"),
    };
    let name = set.path.join(".");
    let help =
        format!("write 'ctx.{name}', read the result of the task by its label, or {OWN_STEP}");
    cx.findings.error("E018", set.at.0, &set.at.1, message, help);
}

/// Returns `true` if templates with these mentions read the variable, or may read it.
fn reads(mentions: &BTreeSet<Mention>, set: &LocalSet) -> bool {
    let scope = set.scope.as_str();
    let name = &set.path[0];
    mentions.iter().any(|mention| {
        if *mention.name == *scope {
            return match &mention.next {
                MentionSuffix::Key(key) => **key == **name,
                MentionSuffix::Nothing | MentionSuffix::Computed => true,
            };
        }
        // Templates can also read iteration variables without their prefix.
        set.scope == SetScope::Iter && *mention.name == **name
    })
}

/// Builds the segments of a pipeline that calls playbooks.
pub(super) fn build(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    tasks: Vec<DecodedTask>,
    defaults: &Defaults<'_>,
) -> Option<Decoded> {
    if let Some(call) = tasks.iter().find(|task| task.own.is_some()) {
        tool::refuse_local(cx, at, &call.tool.kind, defaults);
    }
    let writes_ctx = tasks.iter().any(DecodedTask::writes_ctx);
    // The errors have already been reported.
    if cx.findings.has_errors() {
        return None;
    }
    let segment_of = segments_of(&tasks);
    let mut segments = Vec::new();
    let mut tasks = tasks.into_iter().zip(segment_of).peekable();
    while let Some((first, segment)) = tasks.next() {
        let mut sources = vec![first.source()];
        while let Some((next, _)) = tasks.next_if(|(_, of)| *of == segment) {
            sources.push(next.source());
        }
        let pipeline = match Pipeline::compile(Arc::new(json!({ "tasks": sources }))) {
            Ok(pipeline) => Arc::new(pipeline),
            Err(error) => {
                tool::uncompiled(cx, at, &error);
                return None;
            }
        };
        segments.push(match first.own {
            Some(_) => Segment::Call(Box::new(PlaybookCall { pipeline, limit: first.limit })),
            None => Segment::Tasks(pipeline),
        });
    }
    let work = StepWork::Split(Box::new(Split { segments }));
    Some(Decoded { work, set: Vec::new(), writes_ctx })
}
