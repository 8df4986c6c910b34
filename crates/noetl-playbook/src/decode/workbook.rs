//! `workbook`: tasks that steps refer to by name.
//!
//! The decoder resolves a reference when it decodes the step: the step runs the task's tool,
//! overridden by the reference's own settings. The expanded size of references is limited, so that
//! a small document cannot become a large playbook.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::context::Context;
use super::cursor::{Cursor, Path};
use super::{keys, suggest};
use crate::yaml::{Node, NodeKind, QuoteStyle};

const KEYS: &[&str] = &["name", "tool", "desc", "description", "assert"];

/// Maximum length of a chain of references between tasks. Authors share settings one or two levels
/// deep.
pub(super) const CHAIN_MAX: usize = 16;

/// Bytes counted per value, in addition to its text.
const EACH: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Workbook {
    tasks: HashMap<Rc<str>, WorkbookTask>,
    referred: HashSet<Rc<str>>,
}

#[derive(Debug, Clone)]
pub(super) struct WorkbookTask {
    pub(super) tool: Node,
    /// Arguments that the reference or the task itself must provide.
    pub(super) expects: Vec<Rc<str>>,
    size: usize,
    place: ToolLocation,
}

/// Location of a task's tool, used to reconstruct its path.
#[derive(Debug, Clone)]
enum ToolLocation {
    /// Entry of a list: `workbook[i].tool`, or `workbook[i]` for a task that is its own tool.
    Item(usize, bool),
    /// Entry of a mapping: `workbook.name.tool`, or `workbook.tasks.name.tool`. Without `tool` for
    /// a task that is its own tool.
    Named(bool, Rc<str>, bool),
}

/// Decodes the section. A task's tool is checked where a step refers to it.
pub(super) fn decode(cx: &mut Context<'_>, root: &Cursor<'_>) {
    let Some(at) = root.get("workbook") else { return };
    if at.is_list() {
        for (index, item) in at.items().enumerate() {
            let help = "write '- {name: score, tool: {kind: …}}'";
            if !cx.is_map(&item, help) {
                continue;
            }
            let Some(name) = item.get("name") else {
                cx.error("E014", &item, "the workbook task has no name", help);
                continue;
            };
            let own = item.get("tool").is_none();
            task(cx, &item, &name, ToolLocation::Item(index, own));
        }
        return;
    }
    if !cx.is_map(&at, "write 'workbook: [{name: score, tool: {kind: …}}]'") {
        return;
    }
    if at.entries().next().is_none() {
        return;
    }
    let rewrite = "write a list: 'workbook: [{name: score, tool: {kind: …}}]'";
    cx.older(at.position(), "the workbook is a mapping", rewrite);
    let nested = at.get("tasks").filter(|_| at.entries().count() == 1);
    let tasks = nested.as_ref().unwrap_or(&at);
    for (key, item) in tasks.entries() {
        if !cx.is_map(&item, "write 'score: {tool: {kind: …}}'") {
            continue;
        }
        let name =
            Node { kind: NodeKind::Text(Rc::clone(&key.name), QuoteStyle::Plain), at: key.at };
        let name = Cursor { node: &name, path: item.path };
        let own = item.get("tool").is_none();
        task(cx, &item, &name, ToolLocation::Named(nested.is_some(), Rc::clone(&key.name), own));
    }
}

fn task(cx: &mut Context<'_>, at: &Cursor<'_>, name: &Cursor<'_>, place: ToolLocation) {
    let Some(text) = name.text().filter(|text| !text.is_empty()) else {
        return cx.error("E014", name, "the name of a workbook task is text", "write a name");
    };
    keys::refuse_removed(cx, at, keys::REMOVED_FROM_TOOLS);
    let tool = match at.get("tool") {
        Some(tool) => {
            keys::warn_unknown(cx, at, KEYS, keys::is_removed_from_tools);
            tool
        }
        None if at.get("kind").is_some() => {
            let message = "the task's settings stand beside its name";
            cx.older(name.position(), message, "write '{name: …, tool: {kind: …}}'");
            *at
        }
        None => {
            return cx.error(
                "E014",
                at,
                "the workbook task has no 'tool'",
                "add 'tool: {kind: …}'",
            );
        }
    };
    if let Some(known) = cx.workbook.tasks.get(text) {
        let line = known.tool.at.line;
        let message = format!("workbook task '{text}' is defined near line {line} already");
        return cx.error("E014", name, message, "rename one of the two");
    }
    let expects = expects(cx, at);
    // Each reference checks every expected name.
    let size = size(tool.node) + expects.len() * EACH;
    let entry = WorkbookTask { tool: tool.node.clone(), expects, size, place };
    cx.workbook.tasks.insert(Rc::from(text), entry);
}

/// Decodes `assert.expects`: the required arguments.
fn expects(cx: &mut Context<'_>, at: &Cursor<'_>) -> Vec<Rc<str>> {
    let Some(assert) = at.get("assert") else { return Vec::new() };
    let mut expects = Vec::new();
    for (key, value) in assert.entries() {
        let names: Option<Vec<&str>> =
            value.node.items().and_then(|items| items.iter().map(Node::text).collect());
        match names {
            Some(names) if &*key.name == "expects" => {
                expects.extend(names.into_iter().map(Rc::from));
            }
            _ => {
                let message = format!("'{}' of an assertion has no effect", key.name);
                let help = "list the arguments a reference has to bring: 'assert: {expects: [a]}'";
                cx.warning_at("W114", (key.at, value.path), message, help);
            }
        }
    }
    expects
}

/// Returns the size of a value in bytes of text, plus [`EACH`] per value.
fn size(node: &Node) -> usize {
    EACH + match &node.kind {
        NodeKind::Text(text, _) => text.len(),
        NodeKind::List(items) => items.iter().map(size).sum(),
        NodeKind::Map(entries) => {
            entries.iter().map(|(key, node)| key.name.len() + size(node)).sum()
        }
        NodeKind::Null
        | NodeKind::Bool(_)
        | NodeKind::Int(_)
        | NodeKind::Large(_)
        | NodeKind::Float(_) => 0,
    }
}

/// Adds arguments repeated by every task of a step to the expansion budget. Returns `true` if the
/// budget suffices.
pub(super) fn share(cx: &mut Context<'_>, at: &Cursor<'_>, times: usize) -> bool {
    cx.unfold(at, size(at.node), times)
}

pub(super) struct ResolvedTask {
    pub(super) name: Rc<str>,
    pub(super) entry: WorkbookTask,
}

/// Resolves the reference at `at`. `passed` lists the tasks that led here, to detect cycles.
pub(super) fn refer(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    passed: &[Rc<str>],
) -> Option<ResolvedTask> {
    let Some(name) = at.get("task").or_else(|| at.get("name")) else {
        let help = "name the task: 'tool: {kind: workbook, name: score}'";
        cx.error("E014", at, "the reference to the workbook names no task", help);
        return None;
    };
    let text = name.text().unwrap_or_default();
    let Some((key, entry)) = cx.workbook.tasks.get_key_value(text) else {
        unknown(cx, &name, text);
        return None;
    };
    let (key, entry) = (Rc::clone(key), entry.clone());
    cx.workbook.referred.insert(Rc::clone(&key));
    if passed.contains(&key) {
        let way: Vec<&str> = passed.iter().chain([&key]).map(|name| &**name).collect();
        let message = format!("workbook tasks refer to each other: {}", way.join(", "));
        cx.error("E014", &name, message, "let one of them name the tool it runs");
        return None;
    }
    if passed.len() >= CHAIN_MAX {
        let message = format!("more than {CHAIN_MAX} workbook tasks refer to each other in a row");
        cx.error("E014", &name, message, "refer to the last of them");
        return None;
    }
    cx.unfold(at, entry.size, 1).then_some(ResolvedTask { name: key, entry })
}

fn unknown(cx: &mut Context<'_>, at: &Cursor<'_>, text: &str) {
    let mut known: Vec<&str> = cx.workbook.tasks.keys().map(|name| &**name).collect();
    known.sort_unstable();
    known.truncate(20);
    let help = match known.as_slice() {
        [] => "add it under 'workbook'".to_owned(),
        known => {
            let meant = suggest::among(text, known).unwrap_or_default();
            format!("{meant}the workbook has {}", suggest::list(known))
        }
    };
    cx.error("E014", at, format!("the workbook has no task '{text}'"), help);
}

/// Calls `read` with every task that no step refers to, so that its mistakes are reported too.
pub(super) fn unreferred(
    cx: &mut Context<'_>,
    mut read: impl FnMut(&mut Context<'_>, &str, &Cursor<'_>),
) {
    let referred = |name: &Rc<str>| cx.workbook.referred.contains(name);
    let mut left: Vec<(Rc<str>, WorkbookTask)> = cx
        .workbook
        .tasks
        .iter()
        .filter(|(name, _)| !referred(name))
        .map(|(name, entry)| (Rc::clone(name), entry.clone()))
        .collect();
    left.sort_by_key(|(_, entry)| entry.tool.at);
    for (name, entry) in left {
        with_cursor(&entry, |at| read(cx, &name, at));
    }
}

/// Calls `read` with the tool of a task, with the path of its definition.
pub(super) fn with_cursor<R>(entry: &WorkbookTask, read: impl FnOnce(&Cursor<'_>) -> R) -> R {
    let root = Path::Root;
    let section = root.key("workbook");
    let (outer, item, bare);
    let path = match &entry.place {
        ToolLocation::Item(index, own) => {
            item = Path::Item(&section, *index);
            bare = *own;
            &item
        }
        ToolLocation::Named(nested, name, own) => {
            outer = if *nested { section.key("tasks") } else { section };
            item = outer.key(name);
            bare = *own;
            &item
        }
    };
    let path = if bare { *path } else { path.key("tool") };
    read(&Cursor { node: &entry.tool, path })
}
