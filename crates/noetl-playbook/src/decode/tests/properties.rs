//! Whatever the text, checking ends with an answer.

use proptest::prelude::*;

use super::check;
use crate::decode::describe;

const VALID: &str = "\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: greet, labels: [a, b]}
workload: &base {who: 'world', n: 3, list: [1, 2.5, ~, true]}
executor: {spec: {entry_step: start}}
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
    assert!(
        checked
            .diagnostics
            .iter()
            .all(|found| found.line >= 1 && found.line <= lines && found.column >= 1)
    );
    let places: Vec<_> =
        checked.diagnostics.iter().map(|found| (found.line, found.column)).collect();
    assert!(places.is_sorted());
    let _ = describe(text);
}

proptest! {
    #[test]
    fn arbitrary_text_is_answered(text in "\\PC*") {
        checks(&text);
    }

    #[test]
    fn arbitrary_pieces_are_answered(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60)) {
        checks(&pieces.concat());
    }

    #[test]
    fn a_mutated_playbook_is_answered(
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
