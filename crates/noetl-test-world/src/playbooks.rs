//! Random playbooks.

use super::chance::Chance;

/// Path of a playbook that others call.
pub(crate) const CHILD: &str = "sim/child";
/// Path of a playbook that others call and that fails.
pub(crate) const FAILING: &str = "sim/failing";

#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) path: String,
    pub(crate) text: String,
    /// Whether its outcome depends on the playbook alone, whatever faults happen.
    pub(crate) is_settled: bool,
}

/// Steps whose outcome depends on the playbook alone. `@` stands for the result of the tool.
const SETTLED: &[&str] = &[
    "tool: {kind: noop, result: @}",
    "tool: {kind: noop, result: @}",
    "tool: {kind: noop, result: @}, loop: {in: [1, 2, 3], iterator: x, spec: {mode: sequential}}",
    "tool: {kind: noop, result: @}, loop: {in: [1, 2, 3, 4], iterator: x, spec: {mode: parallel, \
     max_in_flight: 2}}",
    "tool: {kind: noop, result: @}, loop: {in: [1, 2], iterator: x, spec: {mode: parallel, \
     max_in_flight: 1}}",
    "tool: {kind: wait, seconds: 3}",
    "tool: {kind: playbook, path: sim/child, return_result: true}",
    "tool: [{name: t, kind: noop, result: @}, {name: u, kind: noop, result: @}]",
    "tool: [{name: t, kind: noop, result: @}, {name: c, kind: playbook, path: sim/child, \
     return_result: true}, {name: u, kind: noop, result: @}]",
    "tool: [{name: c, kind: playbook, path: sim/child, return_result: true}, {name: u, kind: noop, \
     result: @}], loop: {in: [1, 2, 3], iterator: x, spec: {mode: parallel, max_in_flight: 2}}",
    "tool: {kind: approval}",
    "tool: {kind: playbook, path: sim/failing, return_result: true, spec: {policy: {rules: \
     [{when: \"{{ output.status == 'error' }}\", then: {do: retry, attempts: 2, delay: 1}}]}}}, \
     spec: {policy: {failure: {mode: best_effort}}}",
];

/// Steps whose outcome depends on their order too.
const UNSETTLED: &[&str] = &[
    "tool: {kind: noop, result: @}, loop: {in: [1, 2, 3], iterator: x, spec: {mode: parallel, \
     max_in_flight: 2, policy: {failure: {mode: best_effort}}}}",
    "tool: {kind: noop, result: @}, spec: {policy: {admit: {mode: wait, deadline_s: 9, rules: \
     [{when: '{{ ctx.turns > 2 }}', then: {allow: false}}]}}}",
    "tool: {kind: noop, result: @}, when: '{{ not ctx.t }}'",
    "tool: {kind: noop, result: @}, spec: {timeout: 2}",
];

/// Layouts of a settled document: for each step its result, mode, and arcs.
pub(crate) fn documents(chance: &mut Chance, count: u64) -> Vec<Document> {
    let mut documents = vec![child(CHILD, false), child(FAILING, true)];
    for number in 0..count {
        let is_settled = !chance.one_in(3);
        let text = document(chance, number, is_settled);
        documents.push(Document { path: format!("sim/p{number}"), text, is_settled });
    }
    documents
}

fn head(path: &str) -> String {
    let name = path.replace('/', "_");
    format!(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: {name}, path: {path}}}\n\
         workflow:\n"
    )
}

fn child(path: &str, fails: bool) -> Document {
    let text = format!(
        "{}- {{step: a, tool: {{kind: noop, result: {{ms: 50}}}}, next: {{arcs: [{{step: b}}]}}}}\n\
         - {{step: b, tool: {{kind: wait, seconds: 2}}, next: {{arcs: [{{step: c}}]}}}}\n\
         - {{step: c, tool: {{kind: noop, result: {{ms: 20, fails: {fails}}}}}}}\n",
        head(path)
    );
    Document { path: path.to_owned(), text, is_settled: true }
}

fn document(chance: &mut Chance, number: u64, is_settled: bool) -> String {
    let mut text = head(&format!("sim/p{number}"));
    let steps = chance.between(2, 7);
    for step in 0..steps {
        let arcs = chance.below(4);
        let targets: Vec<u64> = (0..arcs)
            .filter_map(|_| match is_settled {
                true if step + 1 < steps => Some(chance.between(step + 1, steps - 1)),
                true => None,
                false => Some(chance.below(steps)),
            })
            .collect();
        let go: Vec<bool> = (0..4).map(|_| !chance.one_in(3)).collect();
        let ms = if chance.one_in(8) { chance.between(5_000, 40_000) } else { chance.below(900) };
        let fails = chance.one_in(if is_settled { 24 } else { 12 });
        let answer = format!("{{go: {go:?}, ms: {ms}, fails: {fails}}}");
        let work = match is_settled || chance.one_in(2) {
            true => chance.pick(SETTLED),
            false => chance.pick(UNSETTLED),
        };
        let work = work.copied().unwrap_or_default().replace('@', &answer);
        let mode = if chance.one_in(2) { "inclusive" } else { "exclusive" };
        let arcs: Vec<String> = targets
            .iter()
            .enumerate()
            .map(|(place, to)| {
                // Work that answers nothing of its own takes every other arc.
                let even = place % 2 == 0;
                let bound = if is_settled { "" } else { " and ctx.turns < 12" };
                let go = format!("output.go[{place}] or {even}");
                format!("{{step: s{to}, when: '{{{{ ({go}){bound} }}}}'}}")
            })
            .collect();
        let count = match is_settled {
            true => "",
            false => "set: {ctx.turns: '{{ ctx.turns | default(0) | int + 1 }}'}, ",
        };
        text.push_str(&format!(
            "- {{step: s{step}, {work}, {count}next: {{spec: {{mode: {mode}}}, arcs: [{}]}}}}\n",
            arcs.join(", ")
        ));
    }
    text
}
