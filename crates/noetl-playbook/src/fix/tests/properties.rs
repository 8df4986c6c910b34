//! Whatever the older shapes and however they are written, they mean the same afterwards.

use proptest::prelude::*;

use super::super::{fix, meaning};
use crate::check;

/// Ways to write what a step assigns, in the step's own column.
const ASSIGNMENTS: &[&str] = &[
    "",
    "    set_ctx: {a: 1, ctx.b: '{{ outcome.x }}'}   # one\n",
    "    vars:\n      a: 1\n      # within\n      'b': \"{{ outcome.x | default('outcome') }}\"\n",
    "    set: {plain: 1, ctx: {b: 2}}\n",
    "    set_ctx: {a: 1}\n    set: {ctx.b: 2, c: 3}\n",
    "    args: {é: 1}  # é\n",
];

/// Ways to write what it runs.
const TOOLS: &[&str] = &[
    "    tool: {kind: noop, args: {a: 1}, set_ctx: {a: '{{ outcome }}'}, set_iter: {b: 2}}\n",
    "    tool:\n      one:   # label\n          kind: python\n          credential: x\n          code: |\n            a = 1\n\n              b\n",
    "    tool:\n    - first: {kind: noop, with: {a: 1}}   # flow\n    - second:\n        kind: http\n        url: x\n        spec:\n          policy:\n            rules:\n            - expr: outcome.error\n              then: {do: retry, set_ctx: {n: 1}}\n            - else: {do: continue}\n",
    "    tool: [{three: {kind: noop}}, {kind: noop, spec: {policy: {rules: [{when: yes, then: {do: break, set_iter: {x: 1}}}]}}}]\n",
    "    tool:\n      kind: noop\n      spec:\n        policy:\n          rules:\n            - else:\n              then:\n                do: fail\n                desc: x\n",
    "    tool: {kind: playbooks, path: x, args: {a: 1}}\n",
    "    tool:\n      kind: noop\n      eval:   # rules\n      - expr: outcome.error\n        do: retry   # again\n        set_ctx: {n: 1}\n      # else\n      - else:\n        then:\n          do: fail\n",
    "    tool: {kind: noop, eval: [{expr: outcome.error, do: retry, attempts: 2}, {else: {do: fail}}], spec: {timeout: 3}}\n",
    "    tool:\n    - kind: noop\n      name: x\n      policy:\n          - do: continue\n            when: |-\n              output.ok\n    - {name: y, kind: noop, policy: {rules: [{when: yes, do: jump, to: x}]}}\n",
];

/// Forms of `next`.
const NEXTS: &[&str] = &[
    "",
    "    next: a   # there\n",
    "    next: 'a'\n",
    "    next: [a, b]\n",
    "    next:\n      - a\n      # or\n      - b   # there\n",
    "    next:\n    - step: a\n      cond: \"{{ outcome.status == 'ok' }}\"\n      args:\n        k: >-\n          folded\n          text\n    - b\n",
    "    next: [{step: a, condition: yes}, {step: b, with: {k: 1}}]\n    spec: {timeout: 5, next_mode: inclusive}\n",
    "    spec:\n      next_mode: exclusive\n    next:\n      - a\n",
    "    next:\n      step: a\n      when: outcome.ok   # maybe\n",
    "    next: {step: a, set: {x: 1}}\n",
    "    next: {mode: inclusive, arcs: [{step: a, cond: ctx.x}]}\n",
    "    next:\n      arcs:\n        - {step: b}\n      on_no_match: fail\n",
    "    next:\n    - when: outcome.ok   # well\n      then:\n        - step: a\n          args: {k: 1}\n    - else: b\n",
    "    next: [{when: yes, then: {step: a, set: {x: 1}}}, {else: [{step: b}]}]   # ways\n",
];

const LOOPS: &[&str] = &[
    "",
    "    loop: {items: [1], element: item, mode: parallel, concurrency: 2, collect: x}\n",
    "    loop:\n      collection: \"{{ workload.list }}\"\n      iterator: item   # each\n      mode: sequential\n",
];

fn step(name: &'static str) -> impl Strategy<Value = String> {
    let part = prop::sample::select;
    let parts = (part(ASSIGNMENTS), part(TOOLS), part(LOOPS), part(NEXTS));
    (parts, any::<bool>()).prop_map(move |((set, tool, repeat, next), turned)| {
        let body = if turned { [next, repeat, tool, set] } else { [set, tool, repeat, next] };
        format!("  - step: {name}   # {name}\n{}\n", body.concat())
    })
}

proptest! {
    #[test]
    fn fixed_documents_have_the_same_meaning(start in step("start"), a in step("a"), b in step("b"), dos in any::<bool>()) {
        let head = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: test}\nworkflow:\n";
        let text = format!("{head}{start}{a}{b}");
        let text = if dos { text.replace('\n', "\r\n") } else { text };
        let before = check(&text).playbook;
        // A tool of the control plane in a loop cannot assign, among others.
        prop_assume!(before.is_some());
        let fixed = fix(&text);
        let after = check(&fixed.text);
        let left: Vec<_> = fixed.left.iter().map(ToString::to_string).collect();
        prop_assert!(left.is_empty(), "{left:?}\n{text}\n{}", fixed.text);
        prop_assert_eq!(
            before.as_ref().map(meaning::meaning_of),
            after.playbook.as_ref().map(meaning::meaning_of),
            "{}", fixed.text
        );
        prop_assert_eq!(fixed.text.matches('#').count(), text.matches('#').count());
        let breaks = |pattern: &str| fixed.text.matches(pattern).count();
        prop_assert_eq!(breaks("\r\n"), if dos { breaks("\n") } else { 0 });
        let again = fix(&fixed.text);
        prop_assert_eq!((again.changes.len(), again.text), (0, fixed.text));
    }

    #[test]
    fn arbitrary_text_is_unchanged(text in "\\PC*") {
        prop_assert_eq!(fix(&text).text, text);
    }
}
