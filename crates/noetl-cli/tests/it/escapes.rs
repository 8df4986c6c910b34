//! Playbooks and tools that say more than words.

use crate::noetl::{Home, one_step};

#[test]
fn a_playbook_cannot_send_control_characters_to_the_terminal() {
    let name = "a\\u001b[31mred\\nnext";
    let home = Home::with(&one_step("{kind: noop}").replace("start", &format!("\"{name}\"")));
    let output = home.noetl(["run", "test.yaml"]);
    assert!(output.stderr.starts_with("  done    a [31mred next  [time]\n"), "{output:?}");

    let home = Home::with(&one_step(&format!("{{kind: \"{name}\"}}")));
    let output = home.noetl(["check", "test.yaml"]);
    assert!(!output.stderr.contains('\u{1b}'), "{output:?}");

    let home =
        Home::with(&one_step("{kind: shell, command: 'printf \"\\033[31mred\" >&2; exit 1'}"));
    let output = home.noetl(["run", "test.yaml"]);
    assert_eq!(output.code, Some(1));
    assert!(!output.stderr.contains('\u{1b}'), "{output:?}");
}
