//! `ingress`: delivery of messages to a push subscription.

use super::fields::{integer_within, needed_text, positive, section, text};
use crate::decode::context::Context;
use crate::decode::cursor::Cursor;
use crate::subscription::{
    Ingress, Mode, SIGNED, SignedAt, TOLERANCE_SECS, TOLERANCE_SECS_MAX, Verify, VerifyKind,
    is_issuer, is_signed_form, listener,
};

const KEYS: &[&str] = &["gateway_path", "verify", "max_bytes"];
const VERIFY_KEYS: &[&str] = &[
    "type",
    "header",
    "secret",
    "audience",
    "service_account",
    "prefix",
    "timestamp_header",
    "tolerance_secs",
    "signed",
    "issuer",
];

/// Keys that apply only to signatures.
const SIGNATURE_KEYS: [&str; 4] = ["prefix", "timestamp_header", "tolerance_secs", "signed"];

/// Decodes the section `ingress` of a push subscription.
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
    let max_bytes = positive(cx, &at, "max_bytes");
    Some(Ingress { gateway_path: gateway_path?, verify: verify?, max_bytes })
}

fn gateway_path(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<String> {
    let help = "write the path of the gateway's route: 'gateway_path: /ingress/orders'";
    let path = needed_text(cx, at, "gateway_path", help)?;
    let value = at.get("gateway_path")?;
    if !path.starts_with('/') {
        let message = format!("'{path}' does not begin with '/'");
        cx.error("E081", &value, message, format!("write '/{path}'"));
        return None;
    }
    if listener(&path).is_none() {
        cx.error("E081", &value, "the path names no listener", help);
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
        prefix: text(cx, &at, "prefix"),
        timestamp: timestamp(cx, &at),
        issuer: issuer(cx, &at),
    };
    let idle: &[&str] = match verify.kind {
        VerifyKind::HmacSha256 => &["issuer"],
        VerifyKind::Bearer => &["prefix", "timestamp_header", "tolerance_secs", "signed", "issuer"],
        VerifyKind::PubsubOidc => &SIGNATURE_KEYS,
    };
    for name in idle {
        if let Some(key) = at.key(name) {
            let kind = verify.kind.as_str();
            let message = format!("'{name}' has no effect on verification by {kind}");
            cx.warning_at("W114", key, message, "remove it");
        }
    }
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
    let Some(value) = at.get("type") else {
        cx.error("E080", at, "'type' is missing", help);
        return None;
    };
    if value.text() == Some("none") {
        let message = "a listener without verification would start playbooks for anybody";
        cx.error("E081", &value, message, help);
        return None;
    }
    let kind = value.text().and_then(VerifyKind::from_text);
    if kind.is_none() {
        cx.not_one_of("E081", &value, VerifyKind::WORDS);
    }
    kind
}

/// Decodes how signatures are timestamped, if the document requests it.
fn timestamp(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<SignedAt> {
    let header = text(cx, at, "timestamp_header");
    let tolerance = integer_within(cx, at, "tolerance_secs", 1..=TOLERANCE_SECS_MAX);
    let signed = text(cx, at, "signed");
    if let (Some(form), Some(value)) = (&signed, at.get("signed"))
        && !is_signed_form(form)
    {
        let message = "'signed' does not name the time and the body once each";
        let help = format!("write '{SIGNED}', or what the sender signs");
        cx.error("E081", &value, message, help);
    }
    let Some(header) = header else {
        for name in ["tolerance_secs", "signed"] {
            if let Some(key) = at.key(name) {
                let message = format!("'{name}' has no effect without 'timestamp_header'");
                cx.warning_at("W114", key, message, "name the header that holds the time");
            }
        }
        return None;
    };
    Some(SignedAt {
        header,
        tolerance_secs: tolerance.unwrap_or(TOLERANCE_SECS),
        signed: signed.unwrap_or_else(|| SIGNED.to_owned()),
    })
}

fn issuer(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<String> {
    let issuer = text(cx, at, "issuer")?;
    if !is_issuer(&issuer) {
        let message = format!("'{issuer}' is no issuer that can be asked");
        cx.error("E081", &at.get("issuer")?, message, "write its address, as 'https://…'");
        return None;
    }
    Some(issuer)
}
