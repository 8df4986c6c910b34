//! Subscription documents: what they mean, and what is wrong with them.

use insta::assert_snapshot;
use serde_json::json;

use super::rendered;
use crate::subscription::{
    Activation, Mode, OnFull, OnRecovery, Ordering, Passthrough, Propagate, Source, SpoolBackend,
    SpoolMode, VerifyKind,
};
use crate::{Subscription, check_subscription, is_subscription, subscription_spec};

/// Three lines in front of the spec of a test, so that its first key is on line 5.
const HEAD: &str = "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {name: orders, path: sub/orders}\nspec:\n";

/// Returns the diagnostics of a document, one per line with its help below.
fn report(text: &str) -> String {
    let checked = check_subscription(text);
    rendered(checked.diagnostics, checked.subscription.is_some())
}

fn report_spec(spec: &str) -> String {
    report(&format!("{HEAD}{spec}"))
}

fn subscription(spec: &str) -> Subscription {
    let text = format!("{HEAD}{spec}");
    check_subscription(&text).subscription.unwrap_or_else(|| panic!("{}", report(&text)))
}

const PULL: &str = "  source: nats\n  mode: pull\n  dispatch: {playbook: a/b}\n";

/// Returns the smallest push subscription with this verification.
fn push(verify: &str) -> String {
    format!(
        "  source: webhook\n  mode: push\n  dispatch: {{playbook: a/b}}\n  \
         ingress: {{gateway_path: /in/orders, verify: {verify}}}\n"
    )
}

#[test]
fn a_minimal_subscription_has_defaults() {
    let decoded = subscription(PULL);
    assert_eq!((decoded.name.as_str(), decoded.path.as_str()), ("orders", "sub/orders"));
    assert_eq!((decoded.source, decoded.mode), (Source::Nats, Mode::Pull));
    assert_eq!(decoded.activation, Activation::Continuous);
    assert_eq!(decoded.dispatch.playbook, "a/b");
    assert_eq!(decoded.dispatch.payload_from, "message.json");
    assert_eq!((decoded.dispatch.batch_dispatch, decoded.dispatch.batch_max), (false, 100));
    assert_eq!((decoded.dedup.enabled, decoded.dedup.window_secs), (None, 300));
    assert_eq!((decoded.limits.max_in_flight, decoded.limits.max_dispatch_per_sec), (None, None));
    assert!(decoded.headers.normalize && decoded.headers.written.is_none());
    assert_eq!(decoded.headers.propagate, Propagate::W3c);
    assert_eq!((decoded.ingress, decoded.spool), (None, None));
}

#[test]
fn every_field_is_read() {
    let decoded = subscription(
        "
  source: kafka
  mode: pull
  activation: scheduled
  auth: kafka_prod
  brokers: [a:9092, b:9092]
  topic: orders
  group: noetl
  runtime: {target: dedicated-pool, pool: x, batch: 50, timeout_ms: 2000}
  dispatch: {playbook: p/q, payload_from: message.body, execution_pool: sub, batch_dispatch: true, batch_max: 1000}
  dedup: {enabled: true, window_secs: 60}
  limits: {max_in_flight: 5, max_dispatch_per_sec: 0.5}
  headers:
    normalize: false
    directives:
      - {header: X-Prio, controls: priority, map: {high: fast}}
      - {header: x-route, controls: dispatch.playbook, allowed: [p/q]}
    trace: {propagate: none, baggage_allowlist: [user]}
    passthrough: data
  spool:
    mode: hybrid
    backend: s3
    bucket: spool
    credential: s3_prod
    ordering: per_key
    ordering_key: order_id
    circuit: {trip_after: 3, probe_after_ms: 100, probe_interval_ms: 200, downstream: [{name: db, type: tcp, target: x}]}
    retention: {max_age_hours: 24, max_bytes: 1000000, on_full: drop_to_dlq}
    drain: {rate_per_sec: 10, max_replay_attempts: 5, on_recovery: interleave}
",
    );
    assert_eq!(decoded.activation, Activation::Scheduled);
    assert_eq!(decoded.auth.as_deref(), Some("kafka_prod"));
    let connection = json!({"topic": "orders", "group": "noetl", "brokers": ["a:9092", "b:9092"]});
    assert_eq!(Some(&decoded.connection), connection.as_object());
    assert_eq!(decoded.runtime.target.as_deref(), Some("dedicated-pool"));
    assert_eq!((decoded.runtime.batch, decoded.runtime.timeout_ms), (Some(50), Some(2000)));
    assert_eq!(decoded.dispatch.execution_pool.as_deref(), Some("sub"));
    assert_eq!((decoded.dispatch.batch_dispatch, decoded.dispatch.batch_max), (true, 1000));
    assert_eq!((decoded.dedup.enabled, decoded.dedup.window_secs), (Some(true), 60));
    assert_eq!(
        (decoded.limits.max_in_flight, decoded.limits.max_dispatch_per_sec),
        (Some(5), Some(0.5))
    );
    assert!(!decoded.headers.normalize);
    assert_eq!(decoded.headers.directives[0].map["high"], "fast");
    assert_eq!(decoded.headers.directives[1].allowed, ["p/q"]);
    assert_eq!(decoded.headers.propagate, Propagate::None);
    assert_eq!(decoded.headers.baggage_allowlist, ["user"]);
    assert_eq!(decoded.headers.passthrough, Passthrough::Data);
    assert_eq!(decoded.headers.written.expect("as written")["normalize"], false);
    let spool = decoded.spool.expect("a spool");
    assert_eq!((spool.mode, spool.backend), (SpoolMode::Hybrid, Some(SpoolBackend::S3)));
    assert_eq!((spool.bucket.as_deref(), spool.ordering), (Some("spool"), Ordering::PerKey));
    assert_eq!(spool.ordering_key.as_deref(), Some("order_id"));
    assert_eq!((spool.circuit.trip_after, spool.circuit.downstream.len()), (Some(3), 1));
    assert_eq!(spool.retention.on_full, Some(OnFull::DropToDlq));
    assert_eq!(spool.drain.on_recovery, Some(OnRecovery::Interleave));
    assert_eq!(spool.drain.max_replay_attempts, Some(5));
}

#[test]
fn a_push_subscription_names_its_verification() {
    let decoded = subscription(&push("{type: hmac_sha256, header: X-Sig, secret: alias}"));
    let ingress = decoded.ingress.expect("an ingress");
    assert_eq!((ingress.gateway_path.as_str(), ingress.listener()), ("/in/orders", "orders"));
    assert_eq!(ingress.verify.kind, VerifyKind::HmacSha256);
    assert_eq!(ingress.verify.header.as_deref(), Some("X-Sig"));
    for verify in
        ["{type: bearer, secret: alias}", "{type: pubsub_oidc, audience: a, service_account: b}"]
    {
        assert_eq!(report_spec(&push(verify)), "");
    }
    assert_snapshot!(report_spec(&push("{type: hmac_sha256}")), @r"
    error[E080] at 8:47, spec.ingress.verify: verification by hmac_sha256 needs 'header'
      help: add 'header: …'
    error[E080] at 8:47, spec.ingress.verify: verification by hmac_sha256 needs 'secret'
      help: add 'secret: …'
    ");
    assert_snapshot!(report_spec(&push("{type: bearer}")), @r"
    error[E080] at 8:47, spec.ingress.verify: verification by bearer needs 'secret'
      help: add 'secret: …'
    ");
    assert_snapshot!(report_spec(&push("{type: pubsub_oidc, audience: ''}")), @r"
    error[E080] at 8:47, spec.ingress.verify: verification by pubsub_oidc needs 'service_account'
      help: add 'service_account: …'
    error[E081] at 8:77, spec.ingress.verify.audience: 'audience' is empty
      help: write at least one character, or remove it
    ");
    assert_snapshot!(report_spec(&push("{type: none}")), @r"
    error[E081] at 8:54, spec.ingress.verify.type: a listener without verification would start playbooks for anybody
      help: say how senders are known: 'verify: {type: bearer, secret: alias}'
    ");
    assert_snapshot!(report_spec(&push("{type: hmac_sha1}")), @r"
    error[E081] at 8:54, spec.ingress.verify.type: 'hmac_sha1' is not possible here
      help: did you mean 'hmac_sha256'? write hmac_sha256, bearer or pubsub_oidc
    ");
    assert_snapshot!(report_spec(&push("{}")), @r"
    error[E080] at 8:47, spec.ingress.verify: 'type' is missing
      help: say how senders are known: 'verify: {type: bearer, secret: alias}'
    ");
    assert_snapshot!(report_spec(&push("7")), @r"
    error[E009] at 8:47, spec.ingress.verify: expected a mapping, found a number
      help: write 'verify:' and its keys below
    ");
}

#[test]
fn a_gateway_path_is_absolute_and_names_a_listener() {
    let with = |ingress: &str| {
        let spec = "  source: webhook\n  mode: push\n  dispatch: {playbook: a/b}\n";
        report_spec(&format!("{spec}  ingress: {ingress}\n"))
    };
    assert_snapshot!(with("{verify: {type: bearer, secret: a}}"), @r"
    error[E080] at 8:12, spec.ingress: 'gateway_path' is missing
      help: write the path of the gateway's route: 'gateway_path: /ingress/orders'
    ");
    assert_snapshot!(with("{gateway_path: in/orders, verify: {type: bearer, secret: a}}"), @r"
    error[E081] at 8:27, spec.ingress.gateway_path: 'in/orders' does not begin with '/'
      help: write '/in/orders'
    ");
    assert_snapshot!(with("{gateway_path: '', verify: {type: bearer, secret: a}}"), @r"
    error[E081] at 8:27, spec.ingress.gateway_path: 'gateway_path' is empty
      help: write at least one character, or remove it
    ");
    assert_snapshot!(with("{gateway_path: //, verify: {type: bearer, secret: a}}"), @r"
    error[E081] at 8:27, spec.ingress.gateway_path: the path names no listener
      help: write the path of the gateway's route: 'gateway_path: /ingress/orders'
    ");
    assert_snapshot!(with("{gateway_path: /in}"), @r"
    error[E080] at 8:12, spec.ingress: 'verify' is missing
      help: say how senders are known: 'verify: {type: bearer, secret: alias}'
    ");
    assert_snapshot!(with("[]"), @r"
    error[E009] at 8:12, spec.ingress: expected a mapping, found a list
      help: write 'ingress:' and its keys below
    ");
}

#[test]
fn all_missing_keys_of_a_subscription_are_reported_at_once() {
    assert_snapshot!(report("kind: Subscription\n"), @r"
    error[E003] at 1:1: the subscription has no 'metadata'
      help: add 'metadata: {name: orders, path: subscriptions/orders}'
    error[E080] at 1:1: the subscription has no 'spec'
      help: add 'spec: {source: …, mode: …, dispatch: {playbook: …}}'
    ");
    assert_snapshot!(report("kind: subscription\nmetadata: {}\nspec: {}\n"), @r"
    error[E003] at 2:11, metadata: the subscription has neither name nor path
      help: add 'metadata: {name: orders, path: subscriptions/orders}'
    error[E080] at 3:7, spec: 'source' is missing
      help: write 'source: nats', or another of: nats, pubsub, kafka, webhook, postgres, redis, mqtt
    error[E080] at 3:7, spec: 'mode' is missing
      help: write 'mode: pull', or another of: pull, push
    error[E080] at 3:7, spec: the subscription has no 'dispatch'
      help: say what a message starts: 'dispatch: {playbook: path/of/playbook}'
    ");
    assert_snapshot!(report_spec("  source: nats\n  mode: push\n"), @r"
    error[E080] at 5:3, spec: a subscription with 'mode: push' needs 'ingress'
      help: add 'ingress: {gateway_path: /ingress/orders, verify: {type: …}}'
    error[E080] at 5:3, spec: the subscription has no 'dispatch'
      help: say what a message starts: 'dispatch: {playbook: path/of/playbook}'
    ");
    assert_snapshot!(report("kind: Playbook\napiVersion: noetl.io/v7\nmetadata: {path: 7}\nspec: []\n"), @r"
    error[E002] at 1:7, kind: the document is not a Subscription
      help: write 'kind: Subscription'
    error[E001] at 2:13, apiVersion: the API version is not supported
      help: write 'apiVersion: noetl.io/v1'
    error[E009] at 3:18, metadata.path: expected text, found a number
      help: put it in quotes
    error[E009] at 4:7, spec: expected a mapping, found a list
      help: write 'spec:' and its keys below
    ");
    assert_snapshot!(report("[]"), @r"
    error[E009] at 1:1: expected a mapping, found a list
      help: a subscription begins with 'apiVersion: noetl.io/v1' and 'kind: Subscription'
    ");
    assert_snapshot!(report("a: [1"), @r"
    error[E000] at 2:1: this is not valid YAML: while parsing a flow sequence, expected ',' or ']'
      help: check indentation, quotes and brackets on this line and the one before it
    ");
}

#[test]
fn invalid_enum_values_and_numbers_are_rejected() {
    assert_snapshot!(report_spec("
  source: rabbit
  mode: pul
  activation: sometimes
  dispatch: {playbook: '', batch_dispatch: 'yes', batch_max: 1001}
  dedup: {enabled: 1, window_secs: 0}
  limits: {max_in_flight: -1, max_dispatch_per_sec: -.5}
  runtime: {batch: many}
  auth: 7
"), @r"
    error[E081] at 6:11, spec.source: 'rabbit' is not possible here
      help: write nats, pubsub, kafka, webhook, postgres, redis or mqtt
    error[E081] at 7:9, spec.mode: 'pul' is not possible here
      help: did you mean 'pull'? write pull or push
    error[E081] at 8:15, spec.activation: 'sometimes' is not possible here
      help: write continuous or scheduled
    error[E081] at 9:24, spec.dispatch.playbook: 'playbook' is empty
      help: write at least one character, or remove it
    error[E009] at 9:44, spec.dispatch.batch_dispatch: expected true or false, found text
      help: write true or false
    error[E081] at 9:62, spec.dispatch.batch_max: 'batch_max' is out of range
      help: write a whole number from 1 to 1000
    error[E009] at 10:20, spec.dedup.enabled: expected true or false, found a number
      help: write true or false
    error[E081] at 10:36, spec.dedup.window_secs: 'window_secs' is out of range
      help: write a whole number that is at least 1
    error[E081] at 11:27, spec.limits.max_in_flight: 'max_in_flight' is out of range
      help: write a whole number that is at least 1
    error[E081] at 11:53, spec.limits.max_dispatch_per_sec: 'max_dispatch_per_sec' is out of range
      help: write a number above 0
    error[E009] at 12:20, spec.runtime.batch: expected a whole number, found text
      help: write a number without quotes
    error[E009] at 13:9, spec.auth: expected text, found a number
      help: put it in quotes
    ");
    assert_snapshot!(report_spec(&format!("{PULL}  dedup: on\n  limits: [1]\n  headers: x\n  spool: y\n")), @r"
    error[E009] at 8:10, spec.dedup: expected a mapping, found text
      help: write 'dedup:' and its keys below
    error[E009] at 9:11, spec.limits: expected a mapping, found a list
      help: write 'limits:' and its keys below
    error[E009] at 10:12, spec.headers: expected a mapping, found text
      help: write 'headers:' and its keys below
    error[E009] at 11:10, spec.spool: expected a mapping, found text
      help: write 'spool:' and its keys below
    ");
}

#[test]
fn a_directive_names_its_header_and_its_target() {
    let with =
        |directives: &str| report_spec(&format!("{PULL}  headers: {{directives: {directives}}}\n"));
    assert_snapshot!(with("[{header: x}, {controls: priority}, {header: 7, controls: [a]}, text]"), @r"
    error[E080] at 8:26, spec.headers.directives[0]: 'controls' is missing
      help: write '{header: x-noetl-route, controls: dispatch.playbook, allowed: [a/b]}'
    error[E080] at 8:39, spec.headers.directives[1]: 'header' is missing
      help: write '{header: x-noetl-route, controls: dispatch.playbook, allowed: [a/b]}'
    error[E009] at 8:70, spec.headers.directives[2].header: expected text, found a number
      help: put it in quotes
    error[E009] at 8:83, spec.headers.directives[2].controls: expected text, found a list
      help: put it in quotes
    error[E009] at 8:89, spec.headers.directives[3]: expected a mapping, found text
      help: write '{header: x-noetl-route, controls: dispatch.playbook, allowed: [a/b]}'
    ");
    assert_snapshot!(with("[{header: x, controls: dispatch.playbok}, {header: x, controls: dispatch.playbook}, {header: x, controls: priority}]"), @r"
    warning[W114] at 8:48, spec.headers.directives[0].controls: no header decides on 'dispatch.playbok'
      help: did you mean 'dispatch.playbook'? write dispatch.playbook, dispatch.execution_pool, priority, idempotency_key, content_type or schema_hint
    warning[W114] at 8:89, spec.headers.directives[1].controls: no value of this header counts for 'dispatch.playbook'
      help: name the values that do in 'allowed'
    warning[W114] at 8:131, spec.headers.directives[2].controls: no value of this header counts for 'priority'
      help: say which pool a value means in 'map'
    ");
    assert_snapshot!(with("{header: x}"), @r"
    error[E009] at 8:25, spec.headers.directives: expected a list, found a mapping
      help: write '- {header: x-noetl-route, controls: dispatch.playbook}'
    ");
}

#[test]
fn passthrough_is_data_or_none() {
    let with = |word: &str| format!("{PULL}  headers: {{passthrough: {word}}}\n");
    let read = |word: &str| subscription(&with(word)).headers.passthrough;
    assert_eq!((read("data"), read("none")), (Passthrough::Data, Passthrough::None));
    assert_eq!(read("seen"), Passthrough::Data);
    assert_snapshot!(report_spec(&with("seen")), @r"
    warning[W114] at 8:26, spec.headers.passthrough: 'passthrough: seen' has no effect
      help: write 'data' or 'none'
    ");
}

#[test]
fn a_spool_requires_a_location_unless_it_is_off() {
    let with = |spool: &str| report_spec(&format!("{PULL}  spool: {spool}\n"));
    assert_eq!(with("{mode: off}"), "");
    assert_eq!(with("{mode: 'off', backend: s3}"), "");
    assert_eq!(with("{mode: buffer_and_ack, backend: local_disk, path: /var/spool}"), "");
    assert_snapshot!(with("{}"), @r"
    warning[W114] at 8:10, spec.spool: a spool without 'mode' is off
      help: write 'mode: buffer_and_ack', 'mode: hybrid' or 'mode: off'
    ");
    assert_snapshot!(with("{mode: hybrid}"), @r"
    error[E080] at 8:10, spec.spool: 'backend' is missing
      help: write 'backend: nats_object', or another of: nats_object, local_disk, gcs, s3
    ");
    assert_snapshot!(with("{mode: hybrid, backend: nats_object}"), @r"
    error[E080] at 8:10, spec.spool: a spool in nats_object needs 'bucket'
      help: add 'bucket: …'
    ");
    assert_snapshot!(with("{mode: hybrid, backend: local_disk, bucket: b}"), @r"
    error[E080] at 8:10, spec.spool: a spool in local_disk needs 'path'
      help: add 'path: …'
    ");
    assert_snapshot!(with("{mode: on, backend: tape, ordering: any, retention: {on_full: x}, drain: {on_recovery: y}}"), @r"
    error[E081] at 8:17, spec.spool.mode: 'on' is not possible here
      help: write off, buffer_and_ack or hybrid
    error[E081] at 8:30, spec.spool.backend: 'tape' is not possible here
      help: write nats_object, local_disk, gcs or s3
    error[E081] at 8:46, spec.spool.ordering: 'any' is not possible here
      help: write global, per_key or none
    error[E081] at 8:72, spec.spool.retention.on_full: 'x' is not possible here
      help: write stop_acking, drop_to_dlq or alert_only
    error[E081] at 8:97, spec.spool.drain.on_recovery: 'y' is not possible here
      help: write ordered_then_live or interleave
    ");
    let both = "{mode: hybrid, backend: gcs, bucket: b, ordering: global, drain: {on_recovery: interleave}}";
    assert_snapshot!(with(both), @r"
    error[E081] at 8:50, spec.spool.ordering: 'ordering: global' and 'drain.on_recovery: interleave' exclude each other
      help: write 'on_recovery: ordered_then_live', or 'ordering: per_key'
    ");
    assert_eq!(with(&both.replace("global", "per_key")), "");
}

#[test]
fn keys_without_effect_cause_warnings() {
    assert_snapshot!(report_spec(&format!("{PULL}  ingress: {{gateway_path: /a}}\n  strem: x\n  spol: 1\n")), @r"
    warning[W114] at 8:3, spec.ingress: 'ingress' has no effect on a subscription that fetches its messages
      help: remove it, or write 'mode: push'
    warning[W102] at 9:3, spec.strem: unknown key 'strem', which has no effect
      help: did you mean 'stream'?
    warning[W102] at 10:3, spec.spol: unknown key 'spol', which has no effect
      help: did you mean 'spool'?
    ");
    let push = push("{type: bearer, secret: a, tokn: b}");
    assert_snapshot!(report_spec(&format!("{push}  activation: continuous\n")), @r"
    warning[W102] at 8:73, spec.ingress.verify.tokn: unknown key 'tokn', which has no effect
      help: remove it; known here: type, header, secret, audience, service_account, prefix, timestamp_header, tolerance_secs, signed, issuer
    warning[W114] at 9:3, spec.activation: 'activation' has no effect on a subscription that is handed its messages
      help: remove it, or write 'mode: pull'
    ");
}

#[test]
fn the_kind_of_a_subscription_is_case_insensitive() {
    assert!(is_subscription("kind: subscription"));
    assert!(is_subscription(&format!("{HEAD}{PULL}")));
    for text in ["kind: Playbook", "", "a: [1", "kind: [Subscription]", "[]"] {
        assert!(!is_subscription(text), "{text}");
    }
}

#[test]
fn an_invalid_spec_is_returned_as_data() {
    assert_eq!(subscription_spec("spec: {mode: 7}"), Some(json!({"mode": 7})));
    for text in ["spec:", "a: [1", "", "[]", "spec: {a: .nan}"] {
        assert_eq!(subscription_spec(text), None, "{text}");
    }
}

#[test]
fn a_signature_can_have_a_timestamp_and_a_custom_format() {
    let verify = "{type: hmac_sha256, header: X-Sig, secret: hook, prefix: v0=, timestamp_header: X-Time, \
                  tolerance_secs: 60, signed: 'v0:{timestamp}:{body}'}";
    let text = push(verify).replace("verify:", "max_bytes: 1000, verify:");
    let ingress = subscription(&text).ingress.expect("an ingress");
    assert_eq!((ingress.max_bytes, ingress.verify.prefix.as_deref()), (Some(1000), Some("v0=")));
    let signed_at = ingress.verify.timestamp.expect("a time");
    assert_eq!((signed_at.header.as_str(), signed_at.tolerance_secs), ("X-Time", 60));
    assert_eq!(signed_at.signed, "v0:{timestamp}:{body}");
    let plain = "{type: hmac_sha256, header: X-Sig, secret: hook, timestamp_header: X-Time}";
    let signed_at = subscription(&push(plain)).ingress.and_then(|ingress| ingress.verify.timestamp);
    let signed_at = signed_at.expect("a time");
    assert_eq!((signed_at.tolerance_secs, signed_at.signed.as_str()), (300, "{timestamp}.{body}"));
}

#[test]
fn an_invalid_duration_or_issuer_is_reported() {
    assert_snapshot!(report_spec(&push("{type: hmac_sha256, header: X, secret: s, timestamp_header: 7, tolerance_secs: 90000, signed: '{body}', issuer: 'https://id'}")), @r"
    error[E009] at 8:107, spec.ingress.verify.timestamp_header: expected text, found a number
      help: put it in quotes
    warning[W114] at 8:110, spec.ingress.verify.tolerance_secs: 'tolerance_secs' has no effect without 'timestamp_header'
      help: name the header that holds the time
    error[E081] at 8:126, spec.ingress.verify.tolerance_secs: 'tolerance_secs' is out of range
      help: write a whole number from 1 to 86400
    warning[W114] at 8:133, spec.ingress.verify.signed: 'signed' has no effect without 'timestamp_header'
      help: name the header that holds the time
    error[E081] at 8:141, spec.ingress.verify.signed: 'signed' does not name the time and the body once each
      help: write '{timestamp}.{body}', or what the sender signs
    warning[W114] at 8:151, spec.ingress.verify.issuer: 'issuer' has no effect on verification by hmac_sha256
      help: remove it
    ");
    assert_snapshot!(report_spec(&push("{type: bearer, secret: s, prefix: v0=, tolerance_secs: 5}")), @r"
    warning[W114] at 8:73, spec.ingress.verify.prefix: 'prefix' has no effect on verification by bearer
      help: remove it
    warning[W114] at 8:86, spec.ingress.verify.tolerance_secs: 'tolerance_secs' has no effect without 'timestamp_header'
      help: name the header that holds the time
    warning[W114] at 8:86, spec.ingress.verify.tolerance_secs: 'tolerance_secs' has no effect on verification by bearer
      help: remove it
    ");
    assert_snapshot!(report_spec(&push("{type: pubsub_oidc, audience: a, service_account: b, issuer: 'http://id.example'}")), @r"
    error[E081] at 8:108, spec.ingress.verify.issuer: 'http://id.example' is no issuer that can be asked
      help: write its address, as 'https://…'
    ");
    let local =
        "{type: pubsub_oidc, audience: a, service_account: b, issuer: 'http://127.0.0.1:99'}";
    assert_eq!(report_spec(&push(local)), "");
    assert_snapshot!(report_spec(&push("{type: bearer, secret: s}").replace("verify:", "max_bytes: 0, verify:")), @r"
    error[E081] at 8:50, spec.ingress.max_bytes: 'max_bytes' is out of range
      help: write a whole number that is at least 1
    ");
}

#[test]
fn missing_keys_of_a_built_in_source_are_reported() {
    let of = |keys: &str| report_spec(&format!("  dispatch: {{playbook: a/b}}\n{keys}"));
    assert_snapshot!(of("  source: postgres\n  mode: pull\n"), @r"
    error[E080] at 5:3, spec: the postgres source has no 'url'
      help: add 'url: postgres://user@host/database', or 'auth:' with the name of a credential
    error[E080] at 5:3, spec: a postgres source needs 'table' or 'channel'
      help: add 'table:' whose rows are messages, or 'channel:' to be notified on
    ");
    assert_snapshot!(of("  source: postgres\n  mode: pull\n  url: a\n  table: t\n"), @r"
    error[E080] at 5:3, spec: a table of messages needs 'ack'
      help: add 'ack: delete', 'ack: update' with 'done', or 'ack: advance'
    ");
    assert_snapshot!(of("  source: postgres\n  mode: push\n  url: a\n  channel: c\n  key: id\n"), @r"
    error[E080] at 5:3, spec: a subscription with 'mode: push' needs 'ingress'
      help: add 'ingress: {gateway_path: /ingress/orders, verify: {type: …}}'
    error[E081] at 7:9, spec.mode: a source of kind postgres cannot push
      help: write 'mode: pull'
    warning[W114] at 10:3, spec.key: 'key' has no effect without 'table'
      help: remove it, or add what it is for
    ");
    assert_snapshot!(of(
        "  source: postgres\n  mode: pull\n  auth: a\n  table: t\n  ack: advance\n  claim: c\n  \
         order_by: o\n  done: d\n  claim_secs: 0\n"), @r"
    error[E081] at 11:10, spec.claim: rows cannot be claimed and a position be kept of them
      help: remove 'claim', or write 'ack: delete'
    error[E081] at 12:13, spec.order_by: a position is one of the key, so rows come in its order
      help: remove 'order_by', and name it as 'key'
    warning[W114] at 13:3, spec.done: 'done' has no effect without 'ack: update'
      help: remove it, or add what it is for
    error[E081] at 14:15, spec.claim_secs: 'claim_secs' is out of range
      help: write a whole number from 1 to 86400
    ");
    assert_snapshot!(of("  source: postgres\n  mode: pull\n  auth: a\n  table: t\n  ack: update\n"), @r"
    error[E080] at 5:3, spec: 'ack: update' needs 'done'
      help: name the column that says so: 'done: handled_at'
    ");
    assert_snapshot!(of("  source: redis\n  mode: pull\n  topic: a\n  from: last\n"), @r"
    error[E080] at 5:3, spec: the redis source has no 'url'
      help: add 'url: redis://host:6379', or 'auth:' with the name of a credential
    error[E080] at 5:3, spec: a redis source needs 'stream'
      help: add 'stream: name-of-the-stream'
    warning[W102] at 8:3, spec.topic: unknown key 'topic', which has no effect
      help: remove it; known here: source, mode, activation, auth, runtime, ingress, dispatch, dedup, limits, headers, spool, url, user, password, stream, group, consumer, body, from, claim_secs
    error[E081] at 9:9, spec.from: 'last' is not possible here
      help: write first or new
    ");
    assert_snapshot!(of("  source: mqtt\n  mode: pull\n  url: a\n  topic: []\n  qos: 3\n"), @r"
    error[E081] at 9:10, spec.topic: 'topic' lists nothing
      help: write at least one
    error[E081] at 10:8, spec.qos: 'qos' is out of range
      help: write a whole number from 0 to 2
    ");
    assert_snapshot!(of("  source: mqtt\n  mode: pull\n  url: a\n  topic: [a, 7]\n"), @r"
    error[E009] at 9:14, spec.topic[1]: expected text, found a number
      help: put it in quotes
    ");
    assert_snapshot!(of("  source: kafka\n  mode: pull\n  tls: 1\n  mechanism: plain\n"), @r"
    error[E009] at 8:8, spec.tls: expected true or false, found a number
      help: write true or false
    error[E081] at 9:14, spec.mechanism: 'plain' is not possible here
      help: did you mean 'PLAIN'? write PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER
    ");
}

#[test]
fn settings_of_a_source_are_stored_by_name() {
    let decoded = subscription(
        "  source: mqtt\n  mode: pull\n  dispatch: {playbook: a/b}\n  url: mqtt://h\n  topic: [a, b/#]\n  \
         qos: 1\n  client_id: c\n  version: 5\n",
    );
    let connection = json!({
        "url": "mqtt://h", "topic": ["a", "b/#"], "qos": 1, "client_id": "c", "version": 5,
    });
    assert_eq!((decoded.source, Some(&decoded.connection)), (Source::Mqtt, connection.as_object()));
    let decoded = subscription(
        "  source: postgres\n  mode: pull\n  dispatch: {playbook: a/b}\n  auth: db\n  table: outbox\n  \
         ack: update\n  done: done_at\n  claim: held\n  claim_secs: 60\n  poll_ms: 200\n",
    );
    let connection = json!({
        "table": "outbox", "ack": "update", "done": "done_at", "claim": "held", "claim_secs": 60,
        "poll_ms": 200,
    });
    assert_eq!(Some(&decoded.connection), connection.as_object());
}
