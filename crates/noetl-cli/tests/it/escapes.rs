//! Playbooks and tools that say more than words.

use crate::noetl::{Home, one_step};

#[test]
fn a_playbook_cannot_send_control_characters_to_the_terminal() {
    let name = "a\\u001b[31mred\\nnext";
    let home = Home::with(&one_step("{kind: noop}").replace("start", &format!("\"{name}\"")));
    let said = home.noetl(["run", "test.yaml"]);
    assert!(said.stderr.starts_with("  done    a [31mred next  [time]\n"), "{said:?}");

    let home = Home::with(&one_step(&format!("{{kind: \"{name}\"}}")));
    let said = home.noetl(["check", "test.yaml"]);
    assert!(!said.stderr.contains('\u{1b}'), "{said:?}");

    let home =
        Home::with(&one_step("{kind: shell, command: 'printf \"\\033[31mred\" >&2; exit 1'}"));
    let said = home.noetl(["run", "test.yaml"]);
    assert_eq!(said.code, Some(1));
    assert!(!said.stderr.contains('\u{1b}'), "{said:?}");
}
