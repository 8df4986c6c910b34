//! Whatever the text, checking ends with an answer.

use proptest::prelude::*;

use super::check;
use crate::decode::describe;
use crate::fix::fix;

const VALID: &str = "\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: greet, labels: [a, b]}
workload: &base {who: 'world', n: 3, list: [1, 2.5, ~, true]}
executor: {spec: {entry_step: start, final_step: last, policy: {limits: {deadline_s: 60}}}}
keychain: [{name: api, kind: static}]
spec: {notify: {on: [failed], webhook: 'http://x'}}
workbook:
  - name: score
    tool: {kind: noop, args: {a: 1}, spec: {policy: {rules: [{expr: outcome.error, then: {do: retry, attempts: 3, delay: 1, backoff: linear}}, {else: {do: break}}]}}}
workflow:
  - step: start
    desc: >-
      folded
      text
    tool:
      kind: python
      input: {<<: *base, x: \"{{ workload.who }}\"}
      code: |
        result = {'a': who}
    set: {ctx.msg: \"{{ output.data.msg }}\"}
    next:
      spec: {mode: inclusive}
      arcs:
        - {step: end, when: \"{{ ctx.msg == 'x' }}\"}
        - step: other
          on: error
  - step: many
    loop: {in: [1, é], iterator: item, spec: {mode: parallel, max_in_flight: '{{ workload.n }}', policy: {exec: local, failure: {mode: best_effort}}}}
    spec: {timeout: 5, policy: {admit: {mode: wait, rules: [{when: ctx.x, then: {allow: false}}]}, lifecycle: {timeout_s: 3}}}
    tool:
      - é: {kind: workbook, task: score, credential: x}   # é
      - name: two
        kind: shell
        command: ls {{ item }}
        set_ctx: {a: '{{ outcome }}'}
        output_select: [a.b, '$.c[0]']
        spec: {policy: {rules: [{when: true, then: {do: jump, to: é, set: {iter.x: 1}}}]}}
    next:
    - step: rows
      cond: ctx.x
  - step: rows
    loop: {iterator: row, cursor: {auth: pg, claim: 'x {{ __frame_max_rows }}'}, spec: {frame: {max_rows: 3}}}
    tool: {kind: playbook, path: a/b, return_step: end, spec: {policy: {rules: [{when: output.error, then: {do: continue}}]}}}
    vars: {v: 1}
    next: other
  - {step: last, tool: {kind: wait, seconds: 1}}
  - step: other
    tool: [{name: t, kind: http, url: 'http://x', timeout: 5s}]
    next: [{when: a, then: [{step: end}]}, {else: [{step: start}]}]
  - step: end
    tool: {kind: noop}
";

/// Pieces that steer random text towards the interesting parts of YAML and of the language.
const PIECES: &[&str] = &[
    "- ",
    "  ",
    "\n",
    ": ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "'",
    "\"",
    "|",
    ">",
    "&a ",
    "*a",
    "<<: ",
    "? ",
    "!!str ",
    "!x ",
    "---\n",
    "...\n",
    "%TAG ! x\n",
    "#",
    "\t",
    "\r\n",
    "{{ a }}",
    "{% if",
    "é",
    "\u{feff}",
    "\\u0041",
    "step",
    "tool",
    "next",
    "loop",
    "set_ctx",
    "args",
    "rules:",
    "- else:",
    "kind",
    "workflow:",
    "- step: a\n",
    "1",
    ".inf",
    "~",
];

fn checks(text: &str) {
    let checked = check(text);
    let lines = text.split(['\n', '\r']).count() + 1;
    assert!(checked.diagnostics.iter().all(|diagnostic| diagnostic.line >= 1
        && diagnostic.line <= lines
        && diagnostic.column >= 1));
    let places: Vec<_> =
        checked.diagnostics.iter().map(|diagnostic| (diagnostic.line, diagnostic.column)).collect();
    assert!(places.is_sorted());
    let _ = describe(text);
    let fixed = fix(text);
    assert_eq!(check(&fixed.text).playbook.is_some(), checked.playbook.is_some());
    if fixed.changes.is_empty() {
        assert_eq!(fixed.text, text);
    }
}

proptest! {
    #[test]
    fn arbitrary_text_does_not_panic(text in "\\PC*") {
        checks(&text);
    }

    #[test]
    fn arbitrary_combinations_of_fragments_do_not_panic(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60)) {
        checks(&pieces.concat());
    }

    #[test]
    fn a_mutated_playbook_does_not_panic(
        changes in prop::collection::vec((0..VALID.len(), 0..12_usize, prop::sample::select(PIECES)), 1..6),
    ) {
        let mut text: Vec<char> = VALID.chars().collect();
        for (at, removed, piece) in changes {
            let at = at.min(text.len());
            let end = (at + removed).min(text.len());
            text.splice(at..end, piece.chars());
        }
        checks(&text.into_iter().collect::<String>());
    }
}

#[test]
fn the_playbook_that_is_mutated_is_valid() {
    let checked = check(VALID);
    assert!(checked.playbook.is_some(), "{:?}", checked.diagnostics);
}
