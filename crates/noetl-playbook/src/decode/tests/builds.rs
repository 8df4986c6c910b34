//! Large documents, and the catalog's view of any document.

use insta::assert_snapshot;
use serde_json::json;

use super::{HEAD, check};
use crate::decode::describe;

#[test]
fn a_chain_of_twenty_thousand_steps_is_checked_without_recursion() {
    let mut text = HEAD.to_owned();
    for n in 0..20_000 {
        text.push_str(&format!(
            "- {{step: s{n}, tool: {{kind: noop}}, next: {{arcs: [{{step: s{}}}]}}}}\n",
            n + 1
        ));
    }
    text.push_str("- {step: s20000, tool: {kind: noop}}\n");
    let checked = check(&text);
    assert_eq!(checked.diagnostics, []);
    assert_eq!(checked.playbook.map(|playbook| playbook.steps.len()), Some(20_001));
}

#[test]
fn a_pipeline_of_twenty_thousand_tasks_that_jump_is_checked() {
    let mut text = format!("{HEAD}  - step: start\n    tool:\n");
    for n in 0..20_000 {
        text.push_str(&format!(
            "      - {{name: t{n}, kind: noop, spec: {{policy: {{rules: [{{when: false, then: {{do: jump, to: t{}}}}}]}}}}}}\n",
            19_999 - n
        ));
    }
    let checked = check(&text);
    assert_eq!(checked.diagnostics, []);
    assert!(checked.playbook.is_some());
}

#[test]
fn a_document_of_any_kind_is_described() {
    let description = describe(
        "\
kind: Subscription
metadata: {name: s, path: p/s, labels: {team: x}}
workload: {a: '{{ b }}'}
spec: {source: nats}
",
    )
    .expect("described");
    assert_eq!(description.kind, "Subscription");
    assert_eq!(description.name.as_deref(), Some("s"));
    assert_eq!(description.path.as_deref(), Some("p/s"));
    assert_eq!(description.labels, Some(json!({"team": "x"})));
    assert_eq!(description.workload, Some(json!({"a": "{{ b }}"})));
    assert_eq!(description.workflow, None);
}

#[test]
fn an_incomplete_playbook_can_be_described() {
    let description = describe("metadata: {}\nworkflow: [{step: a, tool: {kind: nothing}}]\n")
        .expect("described");
    assert_eq!((&*description.kind, description.name, description.path), ("", None, None));
    assert_eq!(description.workflow, Some(json!([{"step": "a", "tool": {"kind": "nothing"}}])));
}

#[test]
fn a_document_without_metadata_is_not_described() {
    let errors = |text: &str| {
        let diagnostics = describe(text).expect_err("refused");
        diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!(errors("kind: Playbook\n"), @"error[E003] at 1:1: the document has no 'metadata'");
    assert_snapshot!(errors("metadata: 5\n"), @"error[E009] at 1:11, metadata: expected a mapping, found a number");
    assert_snapshot!(errors("a: b: c\n"), @"error[E000] at 1:5: this is not valid YAML: mapping values are not allowed in this context");
    assert_snapshot!(errors("metadata: {name: a, name: b}\n"), @"error[E008] at 1:21: the key 'name' is on line 1 already");
    assert_snapshot!(errors("metadata: {labels: [.inf]}\n"), @"error[E009] at 1:21, metadata.labels[0]: inf cannot be part of data");
}

/// Returns every `"E123"` and `"W123"` in a text.
fn codes(text: &str) -> impl Iterator<Item = &str> {
    let is_code = |word: &&str| {
        word.len() == 4
            && word.starts_with(['E', 'W'])
            && word[1..].bytes().all(|byte| byte.is_ascii_digit())
    };
    text.split('"').filter(is_code)
}

#[test]
fn every_code_has_a_page() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = here.join("../../docs/errors");
    let index = std::fs::read_to_string(pages.join("README.md")).expect("an index");
    for folder in ["src", "src/decode", "src/yaml"] {
        for file in std::fs::read_dir(here.join(folder)).expect("a folder of sources") {
            let path = file.expect("an entry").path();
            if !path.is_file() {
                continue;
            }
            let source = std::fs::read_to_string(&path).expect("a source file");
            for code in codes(&source) {
                assert!(pages.join(format!("{code}.md")).is_file(), "no page for {code}");
                assert!(index.contains(&format!("[{code}]")), "{code} is not in the index");
            }
        }
    }
}

#[test]
fn examples_of_the_guide_compile() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide =
        std::fs::read_to_string(here.join("../../docs/guide/playbooks.md")).expect("a guide");
    let head = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: shown}\n";
    let mut shown = 0;
    for block in guide.split("```yaml\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        let text = match block {
            _ if block.starts_with("apiVersion") => block.to_owned(),
            _ if block.starts_with("- step") => format!("{head}workflow:\n{block}"),
            _ if block.starts_with("workbook") => format!("{head}{block}"),
            _ if block.starts_with("strict") => format!(
                "{head}{block}workflow:\n  - {{step: start, tool: {{kind: noop}}}}\n  - {{step: cleanup, tool: {{kind: noop}}}}\n"
            ),
            // Parts of a step.
            _ => {
                let inner = block.replace('\n', "\n    ");
                format!("{head}workflow:\n  - step: start\n    tool: {{kind: noop}}\n    {inner}\n")
            }
        };
        // Arcs of a fragment lead to steps outside it, and its names are defined outside it.
        let diagnostics = check(&text).diagnostics;
        let wrong: Vec<_> = diagnostics
            .iter()
            .filter(|diagnostic| !matches!(diagnostic.code, "E020" | "W103" | "W105" | "W108"))
            .map(ToString::to_string)
            .collect();
        assert!(wrong.is_empty(), "{wrong:?}\n{text}");
        shown += 1;
    }
    assert!(shown > 8, "{shown}");
}
