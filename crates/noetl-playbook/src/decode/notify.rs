//! `spec.notify`: notifications about an execution.

use noetl_template::Template;

use super::context::Context;
use super::cursor::Cursor;
use super::keys;
use crate::document::NotifySpec;

const WORDS: &[&str] = &["failed", "waiting", "completed"];

/// Decodes the notification settings in the root's `spec`.
pub(super) fn decode(cx: &mut Context<'_>, spec: &Cursor<'_>) -> Option<NotifySpec> {
    let at = spec.get("notify")?;
    let form = "write 'notify: {on: [failed, waiting], webhook: \"https://…\"}'";
    if !cx.is_map(&at, form) {
        return None;
    }
    keys::warn_unknown(cx, &at, &["on", "webhook"], keys::none);
    let mut notify = NotifySpec {
        on_failed: false,
        on_waiting: false,
        on_completed: false,
        webhook: String::new(),
    };
    match at.get("on") {
        Some(on) if on.is_list() => on.items().for_each(|item| tell(cx, &item, &mut notify)),
        Some(on) => tell(cx, &on, &mut notify),
        None => (notify.on_failed, notify.on_waiting) = (true, true),
    }
    let Some(webhook) = at.get("webhook") else {
        cx.error("E024", &at, "the notification has no 'webhook' to go to", form);
        return None;
    };
    match webhook.text() {
        Some(text) if Template::is_template(text) => {
            let message = "the webhook is the same for every execution, so it is no template";
            cx.error("E024", &webhook, message, "write the address itself");
            None
        }
        Some(text) if is_address(text) => {
            text.clone_into(&mut notify.webhook);
            Some(notify)
        }
        _ => {
            let help = "write 'webhook: \"https://…\"'";
            cx.error("E024", &webhook, "the webhook is not an http address", help);
            None
        }
    }
}

fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
}

fn tell(cx: &mut Context<'_>, at: &Cursor<'_>, notify: &mut NotifySpec) {
    match at.text() {
        Some("failed") => notify.on_failed = true,
        Some("waiting") => notify.on_waiting = true,
        Some("completed") => notify.on_completed = true,
        _ => cx.not_one_of("E024", at, WORDS),
    }
}
