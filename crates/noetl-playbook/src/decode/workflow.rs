//! `workflow`: all steps, their names, and the entry step.

use std::sync::Arc;
use std::time::Duration;

use noetl_template::Template;

use super::context::Context;
use super::cursor::Cursor;
use super::{flow, names, step};
use crate::diagnostic::SourcePos;
use crate::document::{FailureMode, JoinRule, OnError, Router, Step, StepWork};
use crate::graph::StepIx;

/// Keys that authors write by mistake instead of `workflow`.
pub(super) const MISNAMED: &[&str] = &["steps", "tasks", "workflows"];

/// Steps of a playbook, and properties derived from them.
#[derive(Debug)]
pub(super) struct Workflow {
    pub(super) steps: Vec<Step>,
    pub(super) entry: StepIx,
    pub(super) implicit_end: Option<StepIx>,
    pub(super) final_step: Option<StepIx>,
}

/// Decodes `workflow`. Returns `None` if there is no entry step. `timeout` applies to tools without
/// any other timeout.
pub(super) fn decode(
    cx: &mut Context<'_>,
    root: &Cursor<'_>,
    timeout: Option<Duration>,
) -> Option<Workflow> {
    let at = list(cx, root)?;
    let names = step_names(cx, &at);
    warn_shadowing(cx, root, &at, &names);
    let named = at.items().zip(names);
    let steps: Vec<Step> =
        named.map(|(item, name)| decode_step(cx, &item, name, timeout)).collect();
    let entry = entry(cx, root);
    let final_step = final_step(cx, root, &steps, entry);
    let entry = entry?;
    let end = cx.steps.get("end").copied().filter(|end| Some(*end) != final_step);
    let implicit_end = flow::implicit_end(&steps, end, entry);
    // An unresolved arc would make its target look unreachable.
    if !cx.findings.has_errors() {
        let starts = std::iter::once(entry).chain(implicit_end).chain(final_step);
        flow::warn_unreachable(cx, &at, &steps, starts);
    }
    Some(Workflow { steps, entry, implicit_end, final_step })
}

fn list<'a>(cx: &mut Context<'_>, root: &'a Cursor<'a>) -> Option<Cursor<'a>> {
    let help = "add 'workflow:' with at least one '- step: name'";
    let Some(at) = root.get("workflow") else {
        let misnamed = MISNAMED.iter().find_map(|name| root.key(name));
        match misnamed {
            Some(key) => {
                cx.error_at("E004", key, "the steps stand under another name", "write 'workflow:'")
            }
            None => cx.error("E004", root, "the playbook has no 'workflow'", help),
        }
        return None;
    };
    match at.node.items() {
        Some([]) => cx.error("E004", &at, "the workflow is empty", help),
        Some(_) => return Some(at),
        None => {
            let message = format!("the workflow is a list of steps, found {}", at.node.described());
            cx.error("E004", &at, message, "begin each step with a dash: '- step: name'");
        }
    }
    None
}

/// Collects the names of all steps, against which arcs are resolved. A step without a valid name
/// gets an empty one, so that list indexes stay the same.
fn step_names(cx: &mut Context<'_>, at: &Cursor<'_>) -> Vec<Arc<str>> {
    let mut names = Vec::new();
    let mut places: Vec<SourcePos> = Vec::new();
    for (index, item) in at.items().enumerate() {
        let written = item.get("step");
        let name: Arc<str> = Arc::from(written.as_ref().and_then(|step| step.text()).unwrap_or(""));
        let ix = StepIx(u32::try_from(index).expect("the limit on nodes is far below u32::MAX"));
        let here = written.as_ref().map_or(item.node.at, |step| step.node.at);
        if item.is_map() {
            check_name(cx, &item, written.as_ref());
        }
        if !name.is_empty() {
            if let Some(first) = cx.steps.get(&name).copied() {
                let line = places[first.index()].line;
                let message = format!("step '{name}' is defined on line {line} already");
                let help = format!("rename one of lines {line} and {}", here.line);
                cx.error("E005", written.as_ref().unwrap_or(&item), message, help);
            } else {
                cx.steps.insert(Arc::clone(&name), ix);
            }
        }
        names.push(name);
        places.push(here);
    }
    names
}

fn check_name(cx: &mut Context<'_>, item: &Cursor<'_>, written: Option<&Cursor<'_>>) {
    let help = "begin the step with '- step: name'";
    let Some(written) = written else {
        return match item.key("name").or_else(|| item.key("id")) {
            Some(key) => cx.error_at(
                "E005",
                key,
                "the step's name stands under another key",
                "write 'step:'",
            ),
            None => cx.error("E005", item, "the step has no name", help),
        };
    };
    match written.text() {
        Some("") => cx.error("E005", written, "the step's name is empty", help),
        Some(text) if Template::is_template(text) => {
            cx.error("E005", written, "a step's name cannot be a template", "write a fixed name");
        }
        Some(_) => {}
        None => {
            let message = format!("a step's name is text, found {}", written.node.described());
            cx.error("E005", written, message, "put the name in quotes");
        }
    }
}

fn warn_shadowing(cx: &mut Context<'_>, root: &Cursor<'_>, at: &Cursor<'_>, names: &[Arc<str>]) {
    let workload = root.node.get("workload").and_then(|node| node.entries()).unwrap_or_default();
    let inputs: std::collections::HashSet<&str> =
        workload.iter().map(|(key, _)| &*key.name).collect();
    for (item, name) in at.items().zip(names) {
        let step = item.get("step").unwrap_or(item);
        if !names::is_sayable(name) {
            let message = format!("in a template '{name}' is a word of its own, never this step");
            let help = format!("rename the step, or write 'steps[\"{name}\"]'");
            cx.warning("W118", &step, message, help);
            continue;
        }
        let hidden = if names::is_always_seen(name) {
            format!("step '{name}' has the name of something templates always see")
        } else if inputs.contains(&**name) {
            format!("step '{name}' has the name of an input in the workload")
        } else {
            continue;
        };
        cx.warning("W109", &step, hidden, "rename the step, so that templates cannot mix them up");
    }
}

fn decode_step(
    cx: &mut Context<'_>,
    item: &Cursor<'_>,
    name: Arc<str>,
    timeout: Option<Duration>,
) -> Step {
    if !item.is_map() {
        cx.expected(item, "a step", "write '- step: name' with 'tool' or 'next' below it");
        return Step {
            name,
            work: StepWork::Route,
            repeat: None,
            when: None,
            admit: None,
            timeout: None,
            limits: Vec::new(),
            failure: FailureMode::default(),
            set: Vec::new(),
            router: Router::default(),
            join: JoinRule::default(),
            on_error: OnError::default(),
        };
    }
    step::decode(cx, item, name, timeout)
}

/// Returns the entry step: `executor.spec.entry_step`, or else the step called `start`, or else the
/// first step.
fn entry(cx: &mut Context<'_>, root: &Cursor<'_>) -> Option<StepIx> {
    match named(cx, root, "entry_step", "to begin with") {
        NamedStep::Nothing => Some(cx.steps.get("start").copied().unwrap_or(StepIx(0))),
        NamedStep::Unknown => None,
        NamedStep::Step(ix, _) => Some(ix),
    }
}

fn final_step(
    cx: &mut Context<'_>,
    root: &Cursor<'_>,
    steps: &[Step],
    entry: Option<StepIx>,
) -> Option<StepIx> {
    let NamedStep::Step(ix, place) = named(cx, root, "final_step", "to end with") else {
        return None;
    };
    let path = "executor.spec.final_step";
    if entry == Some(ix) {
        let message = "the execution begins with its final step";
        cx.findings.error("E006", place, path, message, "name another step");
        return None;
    }
    if steps.iter().flat_map(|step| &step.router.arcs).any(|arc| arc.to == ix) {
        let message = "arcs lead to the final step, so it runs there and once more in the end";
        cx.findings.warning(
            "W117",
            place,
            path,
            message,
            "lead those arcs to another step, or remove them",
        );
    }
    Some(ix)
}

/// Result of resolving a step that `executor.spec` names.
enum NamedStep {
    Nothing,
    Unknown,
    Step(StepIx, SourcePos),
}

fn named(cx: &mut Context<'_>, root: &Cursor<'_>, key: &str, what: &str) -> NamedStep {
    let executor = root.get("executor");
    let spec = executor.as_ref().and_then(|executor| executor.get("spec"));
    let Some(named) = spec.as_ref().and_then(|spec| spec.get(key)) else {
        return NamedStep::Nothing;
    };
    let name = named.text().unwrap_or_default();
    if let Some(ix) = cx.steps.get(name).copied() {
        return NamedStep::Step(ix, named.node.at);
    }
    let help = match cx.similar_step(name) {
        Some(similar) => format!("did you mean '{similar}'?"),
        None => "name a step of the workflow".to_owned(),
    };
    cx.error("E006", &named, format!("there is no step named '{name}' {what}"), help);
    NamedStep::Unknown
}
