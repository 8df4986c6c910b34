//! `kind: Subscription`: a message source and the playbook that each message starts.

pub(super) mod fields;
mod headers;
mod ingress;
mod source;
mod spool;

use serde_json::Value;

use super::context::Context;
use super::cursor::Cursor;
use super::{keys, open, value};
use crate::diagnostic::Diagnostic;
use crate::subscription::{
    Activation, DedupSpec, Dispatch, Mode, PAYLOAD_FROM, RuntimeSpec, Source, Subscription,
    SubscriptionLimits,
};
use fields::{flag, integer_within, needed_text, needed_word, positive, rate, section, text, word};

const KEYS: &[&str] = &["apiVersion", "kind", "metadata", "spec"];
const API_VERSIONS: &[&str] = &["noetl.io/v1", "noetl.io/v2", "noetl.io/v10"];
const SPEC_KEYS: &[&str] = &[
    "source",
    "mode",
    "activation",
    "auth",
    "runtime",
    "ingress",
    "dispatch",
    "dedup",
    "limits",
    "headers",
    "spool",
];

const RUNTIME_KEYS: &[&str] = &["target", "pool", "batch", "timeout_ms"];
const DISPATCH_KEYS: &[&str] =
    &["playbook", "payload_from", "execution_pool", "batch_dispatch", "batch_max"];
const DEDUP_KEYS: &[&str] = &["enabled", "window_secs"];
const LIMIT_KEYS: &[&str] =
    &["max_in_flight", "max_dispatch_per_sec", "max_failures", "max_message_bytes"];

/// Maximum number of messages dispatched together: the capacity of a single request to the server.
const BATCH_MAX: u64 = 1000;
const BATCH_DEFAULT: u64 = 100;

/// Result of checking a subscription with [`check_subscription`].
#[derive(Debug)]
pub struct CheckedSubscription {
    /// Decoded subscription. Present if and only if no diagnostic is an error.
    pub subscription: Option<Subscription>,
    /// All diagnostics, sorted by position.
    pub diagnostics: Vec<Diagnostic>,
}

/// Returns `true` if the document's `kind` is `subscription`, ignoring case.
pub fn is_subscription(text: &str) -> bool {
    let (_, root) = open(text);
    let kind = root.as_ref().and_then(|root| Cursor::root(root).get("kind")?.text().map(is_kind));
    kind.unwrap_or(false)
}

fn is_kind(text: &str) -> bool {
    text.eq_ignore_ascii_case("subscription")
}

/// Parses and checks a subscription document.
pub fn check_subscription(text: &str) -> CheckedSubscription {
    let (mut cx, root) = open(text);
    let subscription = root.and_then(|node| decode(&mut cx, &Cursor::root(&node)));
    let subscription = subscription.filter(|_| !cx.findings.has_errors());
    CheckedSubscription { subscription, diagnostics: cx.findings.into_sorted() }
}

/// Returns the section `spec` of a document as data, even if it is semantically invalid, or `None`
/// if the document cannot be parsed. For documents that are already in a catalog.
pub fn subscription_spec(text: &str) -> Option<Value> {
    let (mut cx, root) = open(text);
    let root = root?;
    let spec = Cursor::root(&root).get("spec").map(|spec| value::literal(&mut cx, &spec));
    spec.filter(|_| !cx.findings.has_errors())
}

fn decode(cx: &mut Context<'_>, root: &Cursor<'_>) -> Option<Subscription> {
    let help = "a subscription begins with 'apiVersion: noetl.io/v1' and 'kind: Subscription'";
    if !cx.is_map(root, help) {
        return None;
    }
    keys::warn_unknown(cx, root, KEYS, keys::none);
    kind(cx, root);
    api_version(cx, root);
    let (name, path) = metadata(cx, root);
    let Some(spec) = root.get("spec") else {
        let help = "add 'spec: {source: …, mode: …, dispatch: {playbook: …}}'";
        cx.error("E080", root, "the subscription has no 'spec'", help);
        return None;
    };
    if !cx.is_map(&spec, "write 'spec:' and its keys below") {
        return None;
    }
    let source = needed_word(cx, &spec, "source", Source::WORDS).and_then(Source::from_text);
    let known = [SPEC_KEYS, &source::keys(source)].concat();
    keys::warn_unknown(cx, &spec, &known, keys::none);
    let mode = needed_word(cx, &spec, "mode", Mode::WORDS).and_then(Mode::from_text);
    let activation = activation(cx, &spec, mode);
    let auth = text(cx, &spec, "auth");
    let connection = source::decode(cx, &spec, source, mode);
    let runtime = runtime(cx, &spec);
    let ingress = ingress::decode(cx, &spec, mode);
    let dispatch = dispatch(cx, &spec);
    let dedup = dedup(cx, &spec);
    let limits = limits(cx, &spec);
    let headers = headers::decode(cx, &spec);
    let spool = spool::decode(cx, &spec);
    Some(Subscription {
        name: name?,
        path: path?,
        source: source?,
        mode: mode?,
        activation,
        auth,
        connection,
        runtime,
        ingress,
        dispatch: dispatch?,
        dedup,
        limits,
        headers,
        spool,
    })
}

fn kind(cx: &mut Context<'_>, root: &Cursor<'_>) {
    let help = "write 'kind: Subscription'";
    match root.get("kind") {
        Some(kind) if kind.text().is_some_and(is_kind) => {}
        Some(kind) => cx.error("E002", &kind, "the document is not a Subscription", help),
        None => cx.error("E002", root, "the document has no 'kind'", help),
    }
}

/// Checks `apiVersion`. The key is optional, because documents without it are in use; a given
/// version must be known.
fn api_version(cx: &mut Context<'_>, root: &Cursor<'_>) {
    let Some(version) = root.get("apiVersion") else { return };
    if !version.text().is_some_and(|text| API_VERSIONS.contains(&text)) {
        let help = "write 'apiVersion: noetl.io/v1'";
        cx.error("E001", &version, "the API version is not supported", help);
    }
}

/// Decodes the name and the path. If only one is present, it serves as both.
fn metadata(cx: &mut Context<'_>, root: &Cursor<'_>) -> (Option<String>, Option<String>) {
    let help = "add 'metadata: {name: orders, path: subscriptions/orders}'";
    let Some(at) = root.get("metadata") else {
        cx.error("E003", root, "the subscription has no 'metadata'", help);
        return (None, None);
    };
    if !cx.is_map(&at, help) {
        return (None, None);
    }
    let (name, path) = (text(cx, &at, "name"), text(cx, &at, "path"));
    if name.is_none() && path.is_none() && at.get("name").is_none() && at.get("path").is_none() {
        cx.error("E003", &at, "the subscription has neither name nor path", help);
    }
    (name.clone().or_else(|| path.clone()), path.or(name))
}

fn activation(cx: &mut Context<'_>, spec: &Cursor<'_>, mode: Option<Mode>) -> Activation {
    if let (Some(Mode::Push), Some(key)) = (mode, spec.key("activation")) {
        let message = "'activation' has no effect on a subscription that is handed its messages";
        cx.warning_at("W114", key, message, "remove it, or write 'mode: pull'");
        return Activation::Continuous;
    }
    let activation = word(cx, spec, "activation", Activation::WORDS);
    activation.and_then(Activation::from_text).unwrap_or(Activation::Continuous)
}

fn runtime(cx: &mut Context<'_>, spec: &Cursor<'_>) -> RuntimeSpec {
    let Some(at) = section(cx, spec, "runtime", RUNTIME_KEYS) else {
        return RuntimeSpec::default();
    };
    RuntimeSpec {
        target: text(cx, &at, "target"),
        pool: text(cx, &at, "pool"),
        batch: positive(cx, &at, "batch"),
        timeout_ms: positive(cx, &at, "timeout_ms"),
    }
}

fn dispatch(cx: &mut Context<'_>, spec: &Cursor<'_>) -> Option<Dispatch> {
    let help = "say what a message starts: 'dispatch: {playbook: path/of/playbook}'";
    if spec.get("dispatch").is_none() {
        cx.error("E080", spec, "the subscription has no 'dispatch'", help);
    }
    let at = section(cx, spec, "dispatch", DISPATCH_KEYS)?;
    let playbook = needed_text(cx, &at, "playbook", help);
    let payload_from = text(cx, &at, "payload_from");
    let execution_pool = text(cx, &at, "execution_pool");
    let batch_dispatch = flag(cx, &at, "batch_dispatch").unwrap_or(false);
    let batch_max = integer_within(cx, &at, "batch_max", 1..=BATCH_MAX).unwrap_or(BATCH_DEFAULT);
    Some(Dispatch {
        playbook: playbook?,
        payload_from: payload_from.unwrap_or_else(|| PAYLOAD_FROM.to_owned()),
        execution_pool,
        batch_dispatch,
        batch_max,
    })
}

fn dedup(cx: &mut Context<'_>, spec: &Cursor<'_>) -> DedupSpec {
    let usual = DedupSpec::default();
    let Some(at) = section(cx, spec, "dedup", DEDUP_KEYS) else { return usual };
    DedupSpec {
        enabled: flag(cx, &at, "enabled"),
        window_secs: positive(cx, &at, "window_secs").unwrap_or(usual.window_secs),
    }
}

fn limits(cx: &mut Context<'_>, spec: &Cursor<'_>) -> SubscriptionLimits {
    let Some(at) = section(cx, spec, "limits", LIMIT_KEYS) else {
        return SubscriptionLimits::default();
    };
    SubscriptionLimits {
        max_in_flight: positive(cx, &at, "max_in_flight"),
        max_dispatch_per_sec: rate(cx, &at, "max_dispatch_per_sec"),
        max_failures: positive(cx, &at, "max_failures"),
        max_message_bytes: positive(cx, &at, "max_message_bytes"),
    }
}
