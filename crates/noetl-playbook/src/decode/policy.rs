//! `policy.rules`: reactions to the outcome of a task.
//!
//! Rules are checked here, each at its position, and emitted in the form of a pipeline's source, so
//! the rules that run are exactly the rules that were checked.

use std::collections::HashSet;
use std::sync::Arc;

use noetl_template::Guard;
use serde_json::{Map, Value};

use super::context::Context;
use super::cursor::Cursor;
use super::{amount, guard, keys, set, suggest};
use crate::assignment::Assignment;

const KEYS: &[&str] = &["rules"];

/// Keys that the language reserves and that have no effect.
const RESERVED_KEYS: &[&str] = &["mode", "on_unmatched", "before", "after", "finally"];
const RULE_KEYS: &[&str] = &["when", "then", "else", "name", "desc"];
const ACTIONS: &[&str] = &["continue", "retry", "jump", "break", "fail"];
const BACKOFFS: &[&str] = &["none", "fixed", "linear", "exponential"];
const ACTION_KEYS: &[&str] =
    &["do", "attempts", "delay", "backoff", "max_delay", "jitter", "to", "set", "desc"];
const RETRY_KEYS: &[&str] = &["attempts", "delay", "backoff", "max_delay", "jitter"];

/// Names that refer to the previous task.
const PREVIOUS: &[&str] = &["previous", "prev", "_previous", "@previous"];

/// Labels of a step's tasks, in document order.
#[derive(Debug, Default)]
pub(super) struct Labels {
    list: Vec<Arc<str>>,
    known: HashSet<Arc<str>>,
}

impl Labels {
    pub(super) fn new(list: Vec<Arc<str>>) -> Self {
        Self { known: list.iter().cloned().collect(), list }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|label| &**label)
    }

    /// Returns `true` if the step has at most a single task.
    pub(super) fn is_single(&self) -> bool {
        self.list.len() < 2
    }

    fn contains(&self, label: &str) -> bool {
        self.known.contains(label)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Tasks<'a> {
    /// A task of a pipeline.
    Labelled {
        /// Labels of all tasks in the pipeline.
        labels: &'a Labels,
        /// Whether this is the first task.
        first: bool,
    },
    /// A control-plane tool, which has no other task to jump to.
    Alone,
}

/// Rules in the form of a pipeline's source, with their assignments.
#[derive(Debug, Default)]
pub(super) struct DecodedRules {
    pub(super) source: Vec<Value>,
    pub(super) set: Vec<Assignment>,
}

/// Decodes the rules of a policy.
pub(super) fn decode(cx: &mut Context<'_>, at: &Cursor<'_>, tasks: Tasks<'_>) -> DecodedRules {
    if at.is_list() {
        cx.older(at.position(), "the policy is a list of rules", "write 'policy: {rules: […]}'");
        return rules(cx, at, tasks);
    }
    if !cx.is_map(at, "write 'policy: {rules: [{when: \"…\", then: {do: retry}}]}'") {
        return DecodedRules::default();
    }
    keys::warn_unknown(cx, at, KEYS, |name| RESERVED_KEYS.contains(&name));
    for name in RESERVED_KEYS {
        if let Some(key) = at.key(name) {
            let message = format!("'{name}' of a policy has no effect");
            let help = "remove it; without a matching rule an error fails the task";
            cx.warning_at("W114", key, message, help);
        }
    }
    match at.get("rules") {
        Some(value) if value.is_list() => rules(cx, &value, tasks),
        Some(value) => {
            let message = format!("'rules' is a list, found {}", value.node.described());
            cx.error("E040", &value, message, "begin each rule with a dash: '- when: …'");
            DecodedRules::default()
        }
        None => DecodedRules::default(),
    }
}

/// Decodes `eval`, the deprecated list of rules.
pub(super) fn eval(cx: &mut Context<'_>, at: &Cursor<'_>, tasks: Tasks<'_>) -> DecodedRules {
    let rewrite = "write 'spec: {policy: {rules: [{when: \"…\", then: {do: …}}]}}'";
    cx.older(at.position(), "'eval' is the older form of a policy's rules", rewrite);
    if !at.is_list() {
        cx.expected(at, "a list of rules", rewrite);
        return DecodedRules::default();
    }
    rules(cx, at, tasks)
}

fn rules(cx: &mut Context<'_>, at: &Cursor<'_>, tasks: Tasks<'_>) -> DecodedRules {
    let mut rules = DecodedRules::default();
    let mut fallback = None;
    for item in at.items() {
        if let Some(line) = fallback {
            let message = format!("the rule on line {line} always applies, so this one never does");
            cx.warning("W106", &item, message, "move the rule without a condition to the end");
            fallback = None;
        }
        if let Some(decoded) = rule(cx, &item, tasks, &mut rules.set) {
            if decoded.get("when").is_none_or(|when| *when == Value::Bool(true)) {
                fallback = Some(item.node.at.line);
            }
            rules.source.push(Value::Object(decoded));
        }
    }
    rules
}

fn rule(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    tasks: Tasks<'_>,
    set: &mut Vec<Assignment>,
) -> Option<Map<String, Value>> {
    let form = "write '- {when: \"…\", then: {do: …}}' or '- else: {then: {do: …}}'";
    if !at.is_map() {
        let message = format!("a rule is a mapping, found {}", at.node.described());
        cx.error("E040", at, message, form);
        return None;
    }
    let flat = at.key("do").is_some();
    keys::warn_unknown(cx, at, RULE_KEYS, |name| {
        name == "expr" || flat && (ACTION_KEYS.contains(&name) || is_older_set(name))
    });
    let when = condition(cx, at);
    let (fallback, otherwise) = (at.key("else"), at.get("else"));
    if when.is_none() && fallback.is_none() {
        cx.error("E040", at, "the rule has neither 'when' nor 'else'", form);
        return None;
    }
    if let (Some(_), Some(key)) = (&when, fallback) {
        let message = "the rule has both 'when' and 'else'";
        cx.error_at("E040", key, message, "make the 'else' a rule of its own, after this one");
        return None;
    }
    let nested = otherwise.as_ref().and_then(|otherwise| otherwise.get("then"));
    let then = at.get("then");
    if let (Some(_), Some(key)) = (&then, fallback) {
        let message = "'then' stands beside 'else' instead of below it";
        cx.warning_at("W112", key, message, "write '- else: {then: {do: …}}'");
    }
    let action = match (then.or(nested), &otherwise) {
        (Some(then), _) => then,
        (None, Some(otherwise)) => {
            let message = "'else' holds the action itself";
            cx.warning("W112", otherwise, message, "write '- else: {then: {do: …}}'");
            *otherwise
        }
        (None, None) if flat => {
            if let Some(key) = at.key("do") {
                let message = "the action stands beside the condition";
                cx.older(key, message, "write 'then: {do: …}'");
            }
            *at
        }
        (None, None) => {
            cx.error("E040", at, "the rule does nothing", "add 'then: {do: continue}'");
            return None;
        }
    };
    let mut rule = decode_action(cx, &action, tasks, flat, set)?;
    match when {
        Some(None) => return None,
        Some(Some(Guard::Constant(answer))) => {
            rule.insert("when".to_owned(), Value::Bool(answer));
        }
        Some(Some(Guard::Template(template))) => {
            rule.insert("when".to_owned(), Value::from(template.source()));
        }
        None => {}
    }
    Some(rule)
}

/// Decodes the condition of a rule. Returns `None` if there is none, and `Some(None)` if it is
/// invalid.
fn condition(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<Option<Guard>> {
    let older = at.key("expr");
    if let (Some(key), Some(_)) = (older, at.key("when")) {
        let message = "the rule has two conditions";
        cx.error_at("E016", key, message, "keep 'when' and combine the two with 'and'");
    } else if let Some(key) = older {
        cx.older(key, "'expr' is the older name of 'when'", "write 'when'");
    }
    let name = if at.key("when").is_some() { "when" } else { "expr" };
    let (_, written) = at.entries().find(|(key, _)| &*key.name == name)?;
    Some(guard::decode(cx, &written).map(|condition| condition.guard))
}

fn is_older_set(name: &str) -> bool {
    matches!(name, "set_ctx" | "set_iter")
}

fn decode_action(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    tasks: Tasks<'_>,
    flat: bool,
    into: &mut Vec<Assignment>,
) -> Option<Map<String, Value>> {
    if let Some(word) = at.text() {
        let message = "the action is a bare word";
        cx.error("E040", at, message, format!("write '{{do: {word}}}'"));
        return None;
    }
    if !at.is_map() {
        let message = format!("an action is a mapping, found {}", at.node.described());
        cx.error("E040", at, message, "write '{do: retry, attempts: 3}'");
        return None;
    }
    if !flat {
        keys::warn_unknown(cx, at, ACTION_KEYS, is_older_set);
    }
    let Some(action) = at.get("do") else {
        cx.error("E040", at, "the rule has no 'do'", "add 'do: retry', or another action");
        return None;
    };
    let known = action.text().and_then(|text| ACTIONS.iter().find(|known| **known == text));
    let Some(&verb) = known else {
        cx.not_one_of("E040", &action, ACTIONS);
        return None;
    };
    let mut rule = Map::new();
    rule.insert("do".to_owned(), Value::from(verb));
    match verb {
        "jump" => {
            rule.insert("to".to_owned(), Value::from(target(cx, at, tasks)?));
        }
        "retry" => retry(cx, at, &mut rule),
        _ => {}
    }
    warn_useless(cx, at, verb);
    let set = set::decode(cx, at, &[]);
    if !set.is_empty() {
        rule.insert("set".to_owned(), set::source(&set));
        into.extend(set);
    }
    Some(rule)
}

/// Resolves the label that a jump leads to.
fn target<'a>(cx: &mut Context<'_>, at: &Cursor<'a>, tasks: Tasks<'_>) -> Option<&'a str> {
    let Tasks::Labelled { labels, first } = tasks else {
        let message = "there is no other task to jump to";
        cx.error("E040", at, message, "lead an arc to the step that does it");
        return None;
    };
    let Some(to) = at.node.get("to").filter(|to| !to.is_null()) else {
        cx.error("E040", at, "the jump has no target", "add 'to: label'");
        return None;
    };
    let to = Cursor { node: to, path: at.path.key("to") };
    let text = match &to.node.kind {
        crate::yaml::NodeKind::Text(text, _) => text.trim(),
        _ => "",
    };
    if PREVIOUS.contains(&text) && first {
        let message = "there is no task before this one";
        cx.error("E040", &to, message, "name the task to go on at, or write 'do: retry'");
        return None;
    }
    if PREVIOUS.contains(&text) || labels.contains(text) {
        let label = (!PREVIOUS.contains(&text)).then(|| text.to_owned());
        cx.crossings.note_jump(label, &to);
        return at.node.get("to").and_then(|to| to.text()).map(str::trim);
    }
    let known: Vec<&str> = labels.iter().take(20).collect();
    let keeps = cx.findings.keeps_errors();
    let meant = keeps.then(|| suggest::among(text, &known)).flatten().unwrap_or_default();
    let help = format!("{meant}the tasks of this step are {}", suggest::list(&known));
    cx.error("E040", &to, format!("there is no task labelled '{text}'"), help);
    None
}

fn retry(cx: &mut Context<'_>, at: &Cursor<'_>, rule: &mut Map<String, Value>) {
    let mut keep = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            rule.insert(name.to_owned(), value);
        }
    };
    if let Some(attempts) = at.get("attempts") {
        keep("attempts", amount::attempts(cx, &attempts));
    }
    for name in ["delay", "max_delay"] {
        if let Some(number) = at.get(name) {
            keep(name, amount::seconds(cx, &number));
        }
    }
    if let Some(jitter) = at.get("jitter") {
        keep("jitter", amount::fraction(cx, &jitter));
    }
    if let Some(backoff) = at.get("backoff") {
        match backoff.text().filter(|text| BACKOFFS.contains(text)) {
            Some(text) => keep("backoff", Some(Value::from(text))),
            None => cx.not_one_of("E040", &backoff, BACKOFFS),
        }
    }
}

/// Warns about parameters that belong to another action.
fn warn_useless(cx: &mut Context<'_>, at: &Cursor<'_>, verb: &str) {
    let useless = |name: &&&str| match **name {
        "to" => verb != "jump",
        _ => verb != "retry",
    };
    for name in RETRY_KEYS.iter().chain(&["to"]).filter(useless) {
        if let Some(key) = at.key(name) {
            let message = format!("'{name}' has no effect on 'do: {verb}'");
            cx.warning_at("W114", key, message, "remove it, or change the action");
        }
    }
}
