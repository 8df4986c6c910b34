//! Much of everything.

use std::fmt::Write as _;

use serde_json::json;

use crate::noetl::{Home, one_step, playbook};

#[test]
fn a_chain_of_many_steps_completes() {
    const STEPS: usize = 2000;
    let mut steps = String::new();
    for step in 0..STEPS {
        let next = format!("next: {{arcs: [{{step: s{}}}]}}", step + 1);
        writeln!(steps, "  - {{step: s{step}, tool: {{kind: noop}}, {next}}}").unwrap();
    }
    writeln!(steps, "  - {{step: s{STEPS}, tool: {{kind: noop, result: there}}}}").unwrap();
    let output = Home::with(&playbook("{}", &steps)).noetl(["run", "test.yaml"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "there\n"));
    assert_eq!(output.stderr.lines().count(), STEPS + 2);
}

#[test]
fn a_hundred_parallel_branches_meet_in_one_join() {
    let names: Vec<String> = (0..100).map(|branch| format!("b{branch}")).collect();
    let arcs: Vec<String> = names.iter().map(|name| format!("{{step: {name}}}")).collect();
    let mut steps = format!(
        "  - {{step: start, next: {{spec: {{mode: inclusive}}, arcs: [{}]}}}}\n",
        arcs.join(", ")
    );
    for name in &names {
        let tool = "{kind: shell, command: 'echo 1'}";
        writeln!(steps, "  - {{step: {name}, tool: {tool}, next: {{arcs: [{{step: end}}]}}}}")
            .unwrap();
    }
    let sum: Vec<String> = names.iter().map(|name| format!("({name}.stdout | int)")).collect();
    let sum = sum.join(" + ");
    writeln!(steps, "  - {{step: end, tool: {{kind: noop, result: {{sum: '{{{{ {sum} }}}}'}}}}}}")
        .unwrap();
    let output = Home::with(&playbook("{}", &steps)).noetl(["run", "test.yaml"]);
    assert_eq!((output.code, output.json()), (Some(0), json!({"sum": 100})));
    assert_eq!(output.stderr.matches("  end  ").count(), 1, "the join ran once: {output:?}");
}

#[test]
fn step_names_of_any_script_work() {
    let steps = "  - {step: größe, tool: {kind: noop}, next: {arcs: [{step: '日本 ☃'}]}}
  - {step: '日本 ☃', tool: {kind: noop, result: there}}
";
    let output = Home::with(&playbook("{}", steps)).noetl(["run", "test.yaml"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "there\n"), "{output:?}");
    assert!(
        output.stderr.contains("  done    größe  [time]\n  done    日本 ☃  [time]\n"),
        "{output:?}"
    );
}

#[test]
fn a_step_named_like_a_template_name_causes_a_warning_and_shadows_nothing() {
    let steps =
        "  - {step: workload, tool: {kind: noop, result: {v: 2}}, next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop, result: '{{ workload.v }}'}}
";
    let output = Home::with(&playbook("{v: 1}", steps)).noetl(["run", "test.yaml"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "1\n"), "{output:?}");
    assert!(output.stderr.contains("warning[W109]"), "{output:?}");
}

#[test]
fn an_unbounded_template_fails_at_its_limit() {
    for (template, limit) in [
        ("{% for i in range(1000000000) %}x{% endfor %}", "100000 items"),
        ("{{ 'x' * 10000000000 }}", "16777216 bytes"),
        ("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", "limit"),
    ] {
        let home = Home::with(&one_step(&format!("{{kind: noop, result: \"{template}\"}}")));
        let output = home.noetl(["run", "test.yaml"]);
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.contains("template_error: "), "{output:?}");
        assert!(output.stderr.contains(limit), "{output:?}");
    }
}

#[test]
fn documents_and_templates_nested_too_deeply_are_rejected() {
    let (open, close) = ("(".repeat(5000), ")".repeat(5000));
    let template = one_step(&format!("{{kind: noop, result: \"{{{{ {open}1{close} }}}}\"}}"));
    let (open, close) = ("[".repeat(5000), "]".repeat(5000));
    let document = one_step(&format!("{{kind: noop, result: {open}1{close}}}"));
    for text in [template, document] {
        let output = Home::with(&text).noetl(["check", "test.yaml"]);
        assert_eq!(output.code, Some(2));
        assert!(output.stderr.ends_with("test.yaml: 1 error\n"), "{output:?}");
        assert!(output.stderr.len() < 2000, "{} bytes", output.stderr.len());
    }
}

#[test]
fn a_huge_payload_reaches_its_step_unchanged() {
    let steps = "  - {step: start, tool: {kind: python, input: {x: '{{ workload.x }}'}, code: 'result = len(x)'}}\n";
    let home = Home::with(&playbook("{}", steps));
    home.write("payload.json", json!({"x": "é".repeat(1_000_000)}).to_string());
    let output = home.noetl(["run", "test.yaml", "--payload", "payload.json", "--db", "log.db"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "1000000\n"), "{output:?}");
}

#[test]
fn inputs_a_shell_step_cannot_accept_are_reported_by_name() {
    let steps =
        "  - {step: start, tool: {kind: shell, command: 'true', env: {X: '{{ workload.x }}'}}}\n";
    let home = Home::with(&playbook("{}", steps));
    for (x, why) in [("a\0b".to_owned(), "holds a NUL"), ("x".repeat(200_000), "larger than")] {
        home.write("payload.json", json!({ "x": x }).to_string());
        let output =
            home.noetl(["run", "test.yaml", "--payload", "payload.json", "--db", "log.db"]);
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.contains(why), "{output:?}");
    }
}

#[test]
fn an_output_file_that_is_not_text_does_not_break_a_step() {
    let home = Home::with(&one_step("{kind: shell, command: \"printf 'a\\\\377b\\\\000c'\"}"));
    let output = home.noetl(["run", "test.yaml", "--db", "log.db"]);
    assert_eq!(output.json()["stdout"], "a\u{fffd}b\0c", "{output:?}");
}
