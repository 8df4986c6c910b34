//! `ingress`: how messages are handed to a subscription.

use super::fields::{needed_text, section, text};
use crate::decode::context::Context;
use crate::decode::cursor::Cursor;
use crate::subscription::{Ingress, Mode, Verify, VerifyKind, listener};

const KEYS: &[&str] = &["gateway_path", "verify"];
const VERIFY_KEYS: &[&str] = &["type", "header", "secret", "audience", "service_account"];

/// The section of a subscription that is handed its messages.
pub(super) fn decode(
    cx: &mut Context<'_>,
    spec: &Cursor<'_>,
    mode: Option<Mode>,
) -> Option<Ingress> {
    match (mode?, spec.key("ingress")) {
        (Mode::Pull, None) => return None,
        (Mode::Pull, Some(key)) => {
            let message = "'ingress' has no effect on a subscription that fetches its messages";
            cx.warning_at("W114", key, message, "remove it, or write 'mode: push'");
            return None;
        }
        (Mode::Push, _) => {}
    }
    let help = "add 'ingress: {gateway_path: /ingress/orders, verify: {type: …}}'";
    if spec.get("ingress").is_none() {
        cx.error("E080", spec, "a subscription with 'mode: push' needs 'ingress'", help);
    }
    let at = section(cx, spec, "ingress", KEYS)?;
    let gateway_path = gateway_path(cx, &at);
    let verify = verify(cx, &at);
    Some(Ingress { gateway_path: gateway_path?, verify: verify? })
}

fn gateway_path(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<String> {
    let help = "write the path of the gateway's route: 'gateway_path: /ingress/orders'";
    let path = needed_text(cx, at, "gateway_path", help)?;
    let found = at.get("gateway_path")?;
    if !path.starts_with('/') {
        let message = format!("'{path}' does not begin with '/'");
        cx.error("E081", &found, message, format!("write '/{path}'"));
        return None;
    }
    if listener(&path).is_none() {
        cx.error("E081", &found, "the path names no listener", help);
        return None;
    }
    Some(path)
}

fn verify(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<Verify> {
    let help = "say how senders are known: 'verify: {type: bearer, secret: alias}'";
    if at.get("verify").is_none() {
        cx.error("E080", at, "'verify' is missing", help);
    }
    let at = section(cx, at, "verify", VERIFY_KEYS)?;
    let kind = kind(cx, &at, help);
    let verify = Verify {
        kind: kind?,
        header: text(cx, &at, "header"),
        secret: text(cx, &at, "secret"),
        audience: text(cx, &at, "audience"),
        service_account: text(cx, &at, "service_account"),
    };
    let needed: &[&str] = match verify.kind {
        VerifyKind::HmacSha256 => &["header", "secret"],
        VerifyKind::Bearer => &["secret"],
        VerifyKind::PubsubOidc => &["audience", "service_account"],
    };
    for name in needed {
        if at.get(name).is_none() {
            let message = format!("verification by {} needs '{name}'", verify.kind.as_str());
            cx.error("E080", &at, message, format!("add '{name}: …'"));
        }
    }
    Some(verify)
}

fn kind(cx: &mut Context<'_>, at: &Cursor<'_>, help: &str) -> Option<VerifyKind> {
    let Some(found) = at.get("type") else {
        cx.error("E080", at, "'type' is missing", help);
        return None;
    };
    if found.text() == Some("none") {
        let message = "a listener without verification would start playbooks for anybody";
        cx.error("E081", &found, message, help);
        return None;
    }
    let kind = found.text().and_then(VerifyKind::from_text);
    if kind.is_none() {
        cx.not_one_of("E081", &found, VerifyKind::WORDS);
    }
    kind
}
