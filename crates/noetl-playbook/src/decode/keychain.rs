//! `keychain`: credentials declared by the document.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Map;

use super::context::Context;
use super::cursor::Cursor;
use super::value;
use crate::document::KeychainEntry;

/// Decodes every declared credential. The resolver interprets the settings when a tool uses the
/// credential.
pub(super) fn decode(cx: &mut Context<'_>, root: &Cursor<'_>) -> Vec<KeychainEntry> {
    let Some(at) = root.get("keychain") else {
        return Vec::new();
    };
    let form = "write 'keychain: [{name: api, kind: credential, credential: my-api}]'";
    if !at.is_list() {
        if at.entries().next().is_some() || !at.is_map() {
            let message = format!("the keychain is a list, found {}", at.node.described());
            cx.error("E019", &at, message, form);
        }
        return Vec::new();
    }
    let mut entries: Vec<KeychainEntry> = Vec::new();
    let mut lines: HashMap<Arc<str>, u32> = HashMap::new();
    for item in at.items() {
        if !item.is_map() {
            let message =
                format!("an entry of the keychain is a mapping, found {}", item.node.described());
            cx.error("E019", &item, message, form);
            continue;
        }
        let name = word(cx, &item, "name");
        let kind = word(cx, &item, "kind");
        let (Some(name), Some(kind)) = (name, kind) else { continue };
        if let Some(line) = lines.get(&name) {
            let message = format!("the credential '{name}' is declared on line {line} already");
            cx.error("E019", &item, message, "rename one of the two");
            continue;
        }
        lines.insert(Arc::clone(&name), item.node.at.line);
        // A worker renders the templates. They are decoded here only to report their mistakes.
        cx.secrets = true;
        value::decode(cx, &item);
        cx.secrets = false;
        let own = |name: &str| matches!(name, "name" | "kind");
        let settings = item.entries().filter(|(key, _)| !own(&key.name));
        let settings: Map<_, _> = settings
            .map(|(key, entry)| (key.name.to_string(), value::literal(cx, &entry)))
            .collect();
        entries.push(KeychainEntry { name, kind, settings });
    }
    entries
}

fn word(cx: &mut Context<'_>, at: &Cursor<'_>, key: &str) -> Option<Arc<str>> {
    match at.get(key) {
        Some(value) => {
            let text = value.text().filter(|text| !text.is_empty());
            if text.is_none() {
                let message = format!("'{key}' of a credential is a word");
                cx.error("E019", &value, message, format!("write '{key}: …' as text"));
            }
            text.map(Arc::from)
        }
        None => {
            let message = format!("the entry of the keychain has no '{key}'");
            cx.error("E019", at, message, "write '- {name: api, kind: credential, …}'");
            None
        }
    }
}
