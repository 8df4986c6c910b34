//! Workbook tasks: how they are written, and what a reference runs.

use std::fmt::Write as _;

use insta::assert_snapshot;
use serde_json::json;

use super::{HEAD, check, report, shown};
use crate::document::{Playbook, StepWork};

fn with(workbook: &str, steps: &str) -> String {
    format!("workbook:\n{workbook}{HEAD}{steps}")
}

fn playbook(workbook: &str, steps: &str) -> Playbook {
    let text = with(workbook, steps);
    check(&text).playbook.unwrap_or_else(|| panic!("{}", report(&text)))
}

#[test]
fn settings_of_a_reference_override_those_of_the_task() {
    let playbook = playbook(
        "  - name: score
    tool: {kind: python, input: {base: 10, bonus: 0, from: task}, code: 'result = base', timeout: 5, spec: {policy: {rules: [{when: ctx.x, then: {do: fail}}]}}}
  - name: better
    desc: a task over another
    tool: {kind: workbook, name: score, input: {bonus: 1}, set: {ctx.b: 1}}
",
        "  - step: start
    input: {from: step}
    tool: {kind: workbook, name: score, input: {bonus: 5}, timeout: 7, spec: {policy: {rules: []}}}
  - step: again
    tool: [{name: better, kind: workbook}, {name: label, kind: workbook, task: score}]
    loop: {in: [1], iterator: i}
",
    );
    let tool = playbook.steps[0].tool().expect("a tool");
    assert_eq!(&*tool.kind, "python");
    assert_eq!(shown(&tool.input), json!({"base": 10, "from": "step", "bonus": 5}));
    assert_eq!(shown(&tool.config), json!({"code": "result = base"}));
    assert_eq!(tool.timeout.map(|timeout| timeout.as_secs()), Some(7));
    let StepWork::Pipeline(pipeline) = &playbook.steps[1].work else { panic!("not a pipeline") };
    let task = &pipeline.source["tasks"][0];
    assert_eq!(task["name"], "better");
    assert_eq!(task["kind"], "python");
    assert_eq!(task["input"], json!({"base": 10, "from": "task", "bonus": 1}));
    assert_eq!(task["rules"], json!([{"do": "fail", "when": "ctx.x"}]));
    assert_eq!(task["set"], json!([{"scope": "ctx", "path": ["b"], "value": 1}]));
    assert_eq!(pipeline.source["tasks"][1]["name"], "label");
}

#[test]
fn older_forms_of_a_workbook_are_decoded() {
    let older = [
        "  tasks: {score: {tool: {kind: noop}}}\n",
        "  score: {tool: {kind: noop}}\n",
        "  - {name: score, kind: noop}\n",
    ];
    let steps = "  - {step: a, tool: {kind: workbook, task: score}}\n";
    let diagnostics: String = older.iter().map(|older| report(&with(older, steps))).collect();
    assert_snapshot!(diagnostics, @r"
    warning[W101] at 2:3, workbook: the workbook is a mapping
      help: write a list: 'workbook: [{name: score, tool: {kind: …}}]'
    warning[W101] at 7:38, workflow[0].tool.task: 'task' is the older name of a workbook reference
      help: write 'name'
    warning[W101] at 2:3, workbook: the workbook is a mapping
      help: write a list: 'workbook: [{name: score, tool: {kind: …}}]'
    warning[W101] at 7:38, workflow[0].tool.task: 'task' is the older name of a workbook reference
      help: write 'name'
    warning[W101] at 2:12, workbook[0].name: the task's settings stand beside its name
      help: write '{name: …, tool: {kind: …}}'
    warning[W101] at 7:38, workflow[0].tool.task: 'task' is the older name of a workbook reference
      help: write 'name'
    ");
}

#[test]
fn mistakes_in_workbooks_are_reported() {
    assert_snapshot!(report(&with("  - {tool: {kind: noop}}
  - {name: 5, tool: {kind: noop}}
  - {name: empty}
  - {name: twice, tool: {kind: noop}}
  - {name: twice, tool: {kind: noop}}
  - {name: round, tool: {kind: workbook, name: about}}
  - {name: about, tool: {kind: workbook, name: round}}
  - {name: unused, tool: {kind: pyhton}}
  - {name: used, tool: {kind: http, url: '{{ open'}}
  - {name: wants, tool: {kind: noop, input: {a: 1}}, assert: {expects: [a, b], returns: [c]}, sink: {}}
  - {name: many, tool: [{kind: noop}]}
  - text
", "  - {step: a, tool: {kind: workbook, name: unsued}}
  - {step: b, tool: {kind: workbook}}
  - {step: c, tool: {kind: workbook, name: round}}
  - {step: d, tool: [{kind: workbook, name: used}, {kind: workbook, name: used}]}
  - {step: e, tool: {kind: workbook, name: wants}}
  - {step: f, tool: {kind: workbook, name: wants, input: {b: 2}}}
  - {step: g, tool: {kind: workbook, name: many}}
")), @r"
    error[E014] at 2:5, workbook[0]: the workbook task has no name
      help: write '- {name: score, tool: {kind: …}}'
    error[E014] at 3:12, workbook[1].name: the name of a workbook task is text
      help: write a name
    error[E014] at 4:5, workbook[2]: the workbook task has no 'tool'
      help: add 'tool: {kind: …}'
    error[E014] at 6:12, workbook[4].name: workbook task 'twice' is defined near line 5 already
      help: rename one of the two
    error[E014] at 8:48, workbook[6].tool.name: workbook tasks refer to each other: round, about, round
      help: let one of them name the tool it runs
    error[E011] at 9:33, workbook[7].tool.kind: unknown tool kind 'pyhton'
      help: did you mean 'python'? this version runs python, http, shell, noop, postgres, sqlite, duckdb, artifact, transfer, nats, secrets, workbook, playbook, wait or approval
    error[E050] at 10:46, workbook[8].tool.url: the template does not compile: unexpected end of input, expected end of variable block
      help: check the braces, quotes and names of the template
    warning[W114] at 11:80, workbook[9].assert.returns: 'returns' of an assertion has no effect
      help: list the arguments a reference has to bring: 'assert: {expects: [a]}'
    error[E060] at 11:95, workbook[9].sink: 'sink' is not part of the language
      help: write the result with a step of its own that 'next' leads to
    error[E014] at 12:24, workbook[10].tool: the workbook task's tool is not a mapping with 'kind'
      help: write 'tool: {kind: …}'; one task runs one tool
    error[E009] at 13:5, workbook[11]: expected a mapping, found text
      help: write '- {name: score, tool: {kind: …}}'
    error[E014] at 18:44, workflow[0].tool.name: the workbook has no task 'unsued'
      help: did you mean 'unused'? the workbook has about, many, round, twice, unused, used or wants
    error[E014] at 19:21, workflow[1].tool: the reference to the workbook names no task
      help: name the task: 'tool: {kind: workbook, name: score}'
    error[E013] at 21:52, workflow[3].tool[1]: the label 'used' is taken on line 21 already
      help: give every task of a step a name of its own
    error[E014] at 22:21, workflow[4].tool: the workbook task 'wants' expects an argument 'b'
      help: add 'input: {b: …}'
    ");
    assert_snapshot!(report(&format!("workbook: text\n{HEAD}  - {{step: a, tool: {{kind: workbook, name: x}}}}\n")), @r"
    error[E009] at 1:11, workbook: expected a mapping, found text
      help: write 'workbook: [{name: score, tool: {kind: …}}]'
    error[E014] at 6:44, workflow[0].tool.name: the workbook has no task 'x'
      help: add it under 'workbook'
    ");
}

#[test]
fn a_long_chain_of_references_is_rejected() {
    let mut workbook = String::new();
    for n in 0..5000 {
        let _ =
            writeln!(workbook, "  - {{name: t{n}, tool: {{kind: workbook, name: t{}}}}}", n + 1);
    }
    workbook.push_str("  - {name: t5000, tool: {kind: noop}}\n");
    let diagnostics = report(&with(&workbook, "  - {step: a, tool: {kind: workbook, name: t0}}\n"));
    assert!(diagnostics.contains("error[E014]"), "{diagnostics}");
    assert!(
        diagnostics.contains("more than 16 workbook tasks refer to each other in a row"),
        "{diagnostics}"
    );
}

#[test]
fn expansion_of_references_is_bounded() {
    let workbook =
        format!("  - {{name: big, tool: {{kind: noop, result: {}}}}}\n", "x".repeat(300_000));
    let steps: String = (0..100)
        .map(|n| format!("  - {{step: s{n}, tool: {{kind: workbook, name: big}}}}\n"))
        .collect();
    let diagnostics = report(&with(&workbook, &steps));
    assert_eq!(diagnostics.matches("error[").count(), 1, "{diagnostics}");
    assert!(
        diagnostics.contains("error[E007]") && diagnostics.contains("unfold to more than"),
        "{diagnostics}"
    );
}
