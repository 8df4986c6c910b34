//! C55, C59, C60: what is found before anything runs.

use noetl_playbook::{Diagnostic, Severity};

use super::plane::{TestPlane, document};
use crate::noetl::Home;

/// Registers these steps. Returns whether they were accepted, and the diagnostics.
async fn registered_with(steps: &str) -> (bool, Vec<Diagnostic>) {
    let plane = TestPlane::open().await;
    let registered = plane.try_register(&document("t", steps)).await;
    plane.close().await;
    match registered {
        Ok(diagnostics) => (true, diagnostics),
        Err(diagnostics) => (false, diagnostics),
    }
}

#[tokio::test]
async fn c55_each_error_is_rejected_at_registration_with_its_position() {
    let noop = "tool: {kind: noop}";
    let retry = "{when: true, then: {do: retry, backoff: cubic}}";
    let cases = [
        (format!("  - {{step: a, {noop}, next: {{arcs: [{{step: b}}]}}}}"), "E020", "'b'", 5),
        (format!("  - {{step: a, {noop}}}\n  - {{step: a, {noop}}}"), "E005", "'a'", 6),
        ("  - {step: a}".to_owned(), "E010", "tool", 5),
        ("  - {step: a, tool: {kind: pyhton}}".to_owned(), "E011", "pyhton", 5),
        (format!("  - {{step: a, {noop}, loop: {{in: [1]}}}}"), "E030", "iterator", 5),
        (
            format!(
                "  - {{step: a, tool: {{kind: noop, spec: {{policy: {{rules: [{retry}]}}}}}}}}"
            ),
            "E040",
            "cubic",
            5,
        ),
    ];
    for (steps, code, says, line) in cases {
        let (is_registered, diagnostics) = registered_with(&steps).await;
        assert!(!is_registered, "{steps} was taken");
        let errors: Vec<_> =
            diagnostics.iter().filter(|it| it.severity == Severity::Error).collect();
        let [error] = errors[..] else { panic!("{steps}: {errors:?}") };
        assert_eq!((error.code, error.line), (code, line), "{error}");
        assert!(error.column > 1 && error.path.starts_with("workflow["), "{error}");
        assert!(error.message.contains(says), "{error}");
        assert!(error.help.is_some(), "{error}");
    }
}

#[tokio::test]
async fn c59_setting_a_variable_to_a_secret_is_rejected() {
    let (is_registered, diagnostics) = registered_with(
        "keychain: [{name: api, kind: credential, credential: my-api}]
workflow:
  - {step: a, tool: {kind: noop}, set: {ctx.token: '{{ keychain.api.token }}'}}
",
    )
    .await;
    let codes: Vec<&str> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    assert_eq!((is_registered, codes), (false, vec!["E051"]));
}

#[test]
fn c59_a_task_that_sets_a_variable_to_its_secret_fails() {
    let home = Home::with(
        "apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: t}
keychain: [{name: api, kind: credential, credential: my-api}]
workflow:
  - step: a
    tool:
      kind: python
      input: {token: '{{ keychain.api.token }}'}
      code: 'result = {\"kept\": token}'
      set: {ctx.token: '{{ output.kept }}'}
",
    );
    home.write(
        "my.json",
        r#"{"name": "my-api", "type": "bearer", "data": {"token": "correct horse battery"}}"#,
    );
    let output = home.noetl(["run", "test.yaml", "--credentials", "my.json"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(
        output.stderr.contains("config: ") && output.stderr.contains("ctx.token"),
        "{output:?}"
    );
    assert!(!format!("{output:?}").contains("correct horse"), "{output:?}");
}

#[tokio::test]
async fn c60_a_condition_of_two_templates_causes_a_warning() {
    let (is_registered, diagnostics) = registered_with(
        "  - {step: a, tool: {kind: noop}, next: {arcs: [{step: b, when: '{{ ctx.x }} and {{ ctx.y }}'}, {step: b}]}}
  - {step: b, tool: {kind: noop}}
",
    )
    .await;
    assert!(
        is_registered && diagnostics.iter().any(|diagnostic| diagnostic.code == "W104"),
        "{diagnostics:?}"
    );
}
