//! Rewrites of policy rules and their location.

use super::edits::Edit;
use super::tree::{FixNode, Shape};
use super::{Fixer, steps};

/// Keys of a rule that are not part of its action.
const CONDITIONS: &[&str] = &["when", "expr", "then", "else"];

pub(super) fn rewrite(fixer: &mut Fixer<'_>, tool: &FixNode) {
    let spec = tool.get("spec");
    let within = spec.and_then(|spec| spec.entry("policy"));
    let (beside, eval) = (tool.entry("policy"), tool.entry("eval"));
    let lists = [within, beside].map(|entry| entry.map(|(_, policy)| rules_of(policy)));
    let lists = lists.into_iter().chain([eval.map(|(_, eval)| eval)]).flatten();
    let rules: Vec<&FixNode> = lists.flat_map(FixNode::items).collect();
    rules.iter().for_each(|item| rule(fixer, item));
    // Nesting uses the current columns, so actions are rewritten first, in an earlier pass.
    if rules.iter().any(|item| item.has("do") && !item.is_flow()) {
        return;
    }
    if let Some((key, policy)) = within
        && !policy.items().is_empty()
        && let Some(edits) = fixer.put_under(key, policy, &["rules"])
    {
        fixer.push(policy.start, "put the rules of 'policy' under 'rules'", edits);
    }
    match (beside, eval, spec) {
        (Some(policy), None, None) if policy.1.items().is_empty() => {
            under_spec(fixer, policy, &["policy"]);
        }
        (Some(list), None, None) => under_spec(fixer, list, &["policy", "rules"]),
        (None, Some(list), None) => under_spec(fixer, list, &["policy", "rules"]),
        (None, Some(list), Some(spec)) => into_spec(fixer, tool, spec, list),
        _ => {}
    }
}

/// Returns the list of rules of a policy, which may be the policy itself.
fn rules_of(policy: &FixNode) -> &FixNode {
    policy.get("rules").unwrap_or(policy)
}

/// Rewrites `eval: […]` or `policy: …` to `spec: {policy: …}` at the same position.
fn under_spec(fixer: &mut Fixer<'_>, (key, value): &(FixNode, FixNode), names: &[&str]) {
    if value.shared {
        return;
    }
    let Some(mut edits) = fixer.put_under(key, value, names) else { return };
    let Some(name) = key.text() else { return };
    let what = format!("put '{name}' under 'spec' as '{}'", names.join("."));
    edits.push(Edit::replace(fixer.content(key), "spec"));
    fixer.push(key.start, what, edits);
}

/// Moves a flow-style `eval: […]` into an existing `spec`.
fn into_spec(
    fixer: &mut Fixer<'_>,
    tool: &FixNode,
    spec: &FixNode,
    (key, eval): &(FixNode, FixNode),
) {
    let list = fixer.written(eval);
    let Some((first, _)) = spec.entries().first() else { return };
    if !eval.is_flow()
        || eval.items().is_empty()
        || spec.has("policy")
        || list.contains(['\n', '#'])
    {
        return;
    }
    let policy = format!("policy: {{rules: {list}}}");
    let Some(mut edits) = fixer.remove(tool, "eval") else { return };
    edits.push(Edit::insert(
        first.start,
        if spec.is_flow() {
            format!("{policy}, ")
        } else {
            format!("{policy}{}{}", fixer.newline, " ".repeat(fixer.indent(first.start)))
        },
    ));
    fixer.push(key.start, "put 'eval' under 'spec' as 'policy.rules'", edits);
}

/// Rewrites a rule of a policy.
fn rule(fixer: &mut Fixer<'_>, at: &FixNode) {
    fixer.rename(at, "expr", "when");
    for name in ["when", "expr"] {
        steps::condition(fixer, at, name);
    }
    let otherwise = at.get("else");
    if let Some(action) = otherwise.filter(|otherwise| otherwise.has("do"))
        && !action.has("then")
        && !at.has("then")
        && let Shape::Map(_, true) = action.shape
    {
        let edits = vec![Edit::insert(action.start, "{then: "), Edit::insert(action.end, "}")];
        fixer.push(action.start, "put the action of 'else' under 'then'", edits);
    }
    misindented(fixer, at);
    move_action_under_then(fixer, at);
    let below = otherwise.and_then(|otherwise| otherwise.get("then"));
    for action in [Some(at), at.get("then"), otherwise, below].into_iter().flatten() {
        if action.has("do") {
            steps::assignments(fixer, action, &["set_ctx", "set_iter"]);
        }
    }
}

/// Indents a `then` that is in the column of `- else:` instead of below it.
fn misindented(fixer: &mut Fixer<'_>, at: &FixNode) {
    let [(first, nothing), (then, action)] = at.entries() else { return };
    let shaped = first.text() == Some("else") && then.text() == Some("then") && !at.is_flow();
    if !shaped || nothing.start != nothing.end || fixer.line_start(then.start) <= first.start {
        return;
    }
    let mut edits = vec![Edit::insert(fixer.line_start(then.start), "  ")];
    edits.extend(fixer.shift(then.start, action.end, 2));
    fixer.push(then.start, "put 'then' below 'else'", edits);
}

/// Moves an action beside its condition under `then`.
fn move_action_under_then(fixer: &mut Fixer<'_>, at: &FixNode) {
    if !at.has("do") || at.has("then") || at.has("else") {
        return;
    }
    let is_action =
        |(key, _): &(FixNode, FixNode)| !key.text().is_some_and(|name| CONDITIONS.contains(&name));
    let entries = at.entries();
    let Some(from) = entries.iter().position(is_action) else { return };
    let count = entries[from..].iter().take_while(|entry| is_action(entry)).count();
    // A condition between the parts of an action would have to move, too.
    if entries.iter().filter(|entry| is_action(entry)).count() != count {
        return;
    }
    let (first, _) = &entries[from];
    let (_, last) = &entries[from + count - 1];
    let mut edits = Vec::new();
    if at.is_flow() {
        edits.push(Edit::insert(first.start, "then: {"));
        edits.push(Edit::insert(last.end, "}"));
    } else {
        let column = " ".repeat(fixer.indent(first.start) + 2);
        edits.push(Edit::insert(first.start, format!("then:{}{column}", fixer.newline)));
        edits.extend(fixer.shift(first.start, last.end, 2));
    }
    fixer.push(first.start, "put the action under 'then'", edits);
}
