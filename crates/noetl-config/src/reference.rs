//! Renders the reference page of all settings.

use std::fmt::Write as _;

use crate::kind::Kind;
use crate::setting::{Secrecy, Setting};
use crate::tree::{Options, SectionInfo};

const HEAD: &str = include_str!("reference.md");

/// Returns the page in Markdown, as in `docs/guide/configuration.md`.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for info in Options::sections() {
        section(&mut page, info);
    }
    page
}

fn section(page: &mut String, info: &SectionInfo) {
    let about = words(info.about);
    let _ = write!(page, "\n## `[{}]`\n\n{}\n\n", info.name, wrapped(&about));
    page.push_str("| key | variable | flag | type | default | description |\n");
    page.push_str("|---|---|---|---|---|---|\n");
    for setting in info.settings {
        let guard = if setting.is_guarded { " 🔒" } else { "" };
        let variables: Vec<String> =
            setting.variables.iter().map(|name| format!("`{name}`")).collect();
        let flag = setting.flag.map(|flag| format!("`--{}`", flag.long)).unwrap_or_default();
        let _ = writeln!(
            page,
            "| `{}`{guard} | {} | {flag} | {} | {} | {} |",
            setting.name(),
            variables.join(", "),
            kind(setting),
            default(setting),
            words(setting.about).replace('|', "\\|"),
        );
    }
}

fn kind(setting: &Setting) -> String {
    let range = |unit: &str, min: i64, max: i64| match (min, max) {
        (i64::MIN, i64::MAX) => format!("integer{unit}"),
        (min, i64::MAX) => format!("integer{unit} from {min}"),
        (min, max) => format!("integer{unit} from {min} to {max}"),
    };
    let text = match setting.kind {
        Kind::Text => "string".to_owned(),
        Kind::Number { min, max } => range("", min, max),
        Kind::Seconds { min, max } => range(", seconds,", min, max),
        Kind::Millis { min, max } => range(", milliseconds,", min, max),
        Kind::Switch | Kind::OtelSwitch => "Boolean".to_owned(),
        Kind::Choice(choices) => {
            let choices: Vec<String> = choices.iter().map(|it| format!("`{it}`")).collect();
            format!("string: {}", choices.join(", "))
        }
        Kind::List => "array of strings, or a string with commas".to_owned(),
        Kind::Path => "string: path".to_owned(),
        Kind::Ip => "string: IP address".to_owned(),
        Kind::Socket => "string: address and port".to_owned(),
    };
    match setting.secrecy {
        Secrecy::Open => text,
        Secrecy::Url => format!("{text}: URL, shown without its secrets"),
        Secrecy::Secret => format!("{text}, secret"),
    }
}

fn default(setting: &Setting) -> String {
    match (setting.default_note, setting.default) {
        (Some(note), _) => note.to_owned(),
        (None, Some(text)) => format!("`{text}`"),
        (None, None) => "none".to_owned(),
    }
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Wraps a paragraph at 100 columns.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + word.len() < 100 => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}
