//! The canaries, and every way one may be written.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

/// Names of the canaries, one per tool.
pub(super) const CANARIES: [&str; 14] = [
    "http", "postgres", "sqlite", "shell", "python", "nats", "artifact", "transfer", "secrets",
    "workbook", "playbook", "notify", "pipeline", "failure",
];

/// The secret of a tool. It holds what URLs, JSON and base64 write in ways of their own.
pub(super) fn canary(name: &str) -> String {
    format!(
        "canary of {name}/\"{:x}+q==\"?",
        name.bytes().fold(7_u64, |sum, byte| sum * 131 + u64::from(byte))
    )
}

/// The canaries that are in `bytes`, each with the form it was found in.
pub(super) fn seen(bytes: &[u8]) -> impl Iterator<Item = String> {
    let names: Vec<String> = CANARIES
        .iter()
        .flat_map(|name| forms(&canary(name)).into_iter().map(move |form| (name, form)))
        .filter(|(_, (_, form))| is_in(bytes, form.as_bytes()))
        .map(|(name, (kind, _))| format!("the canary of {name} ({kind})"))
        .collect();
    names.into_iter()
}

fn is_in(bytes: &[u8], form: &[u8]) -> bool {
    let first = form[0];
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == first) {
        if bytes[from + at..].starts_with(form) {
            return true;
        }
        from += at + 1;
    }
    false
}

fn forms(secret: &str) -> Vec<(&'static str, String)> {
    let escaped = json!(secret).to_string();
    let escaped = escaped[1..escaped.len() - 1].to_owned();
    let twice = json!(escaped).to_string();
    let mut forms = vec![
        ("as it is", secret.to_owned()),
        ("as JSON", escaped),
        ("as JSON in JSON", twice[1..twice.len() - 1].to_owned()),
        ("URL-encoded", percent(secret, false)),
        ("as a form", percent(secret, true)),
        // How a dump of Postgres shows bytes.
        ("as hexadecimal digits", hexadecimal(secret)),
    ];
    // Without the characters that depend on what stands before and after it.
    for skipped in 0..3 {
        let whole = BASE64_STANDARD.encode([vec![b' '; skipped], secret.into()].concat());
        forms.push(("base64", whole[4..whole.len() - 4].to_owned()));
    }
    forms
}

fn hexadecimal(secret: &str) -> String {
    secret.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn percent(secret: &str, is_form: bool) -> String {
    let mut text = String::new();
    for byte in secret.bytes() {
        match byte {
            b' ' if is_form => text.push('+'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => text.push(byte.into()),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[test]
fn a_canary_is_detected_in_every_encoding() {
    let secret = canary("http");
    let within = |text: String| format!("some text, {text}, and more").into_bytes();
    let basic = BASE64_STANDARD.encode(format!("user:{secret}, and more"));
    let written = [
        secret.clone(),
        json!({ "a": secret }).to_string(),
        json!({ "a": json!({ "b": secret }).to_string() }).to_string(),
        percent(&secret, false),
        percent(&secret, true),
        hexadecimal(&secret),
        basic,
    ];
    for text in written {
        let detected: Vec<String> = seen(&within(text.clone())).collect();
        assert!(detected.iter().all(|name| name.contains("http")), "{detected:?}");
        assert!(!detected.is_empty(), "{text}");
    }
    assert_eq!(seen(b"canary of nobody").count(), 0);
}
