//! Subscription documents: what they mean, and what is wrong with them.

use insta::assert_snapshot;
use serde_json::json;

use crate::subscription::{
    Activation, Mode, OnFull, OnRecovery, Ordering, Propagate, Source, SpoolBackend, SpoolMode,
    VerifyKind,
};
use crate::{Subscription, check_subscription, is_subscription, subscription_spec};

/// Three lines in front of the spec of a test, so that its first key is on line 5.
const HEAD: &str = "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {name: orders, path: sub/orders}\nspec:\n";

/// Everything found in a document, one finding per line with its help below.
fn report(text: &str) -> String {
    let checked = check_subscription(text);
    let has_errors =
        checked.diagnostics.iter().any(|found| found.severity == crate::Severity::Error);
    assert_eq!(checked.subscription.is_none(), has_errors);
    let mut report = String::new();
    for found in checked.diagnostics {
        report.push_str(&format!("{found}\n"));
        if let Some(help) = found.help {
            report.push_str(&format!("  help: {help}\n"));
        }
    }
    report
}

fn report_spec(spec: &str) -> String {
    report(&format!("{HEAD}{spec}"))
}

fn subscription(spec: &str) -> Subscription {
    let text = format!("{HEAD}{spec}");
    check_subscription(&text).subscription.unwrap_or_else(|| panic!("{}", report(&text)))
}

const PULL: &str = "  source: nats\n  mode: pull\n  dispatch: {playbook: a/b}\n";

/// The smallest push subscription with this verification.
fn push(verify: &str) -> String {
    format!(
        "  source: webhook\n  mode: push\n  dispatch: {{playbook: a/b}}\n  \
         ingress: {{gateway_path: /in/orders, verify: {verify}}}\n"
    )
}

#[test]
fn a_small_subscription_has_defaults() {
    let found = subscription(PULL);
    assert_eq!((found.name.as_str(), found.path.as_str()), ("orders", "sub/orders"));
    assert_eq!((found.source, found.mode), (Source::Nats, Mode::Pull));
    assert_eq!(found.activation, Activation::Continuous);
    assert_eq!(found.dispatch.playbook, "a/b");
    assert_eq!(found.dispatch.payload_from, "message.json");
    assert_eq!((found.dispatch.batch_dispatch, found.dispatch.batch_max), (false, 100));
    assert_eq!((found.dedup.enabled, found.dedup.window_secs), (false, 300));
    assert_eq!((found.limits.max_in_flight, found.limits.max_dispatch_per_sec), (None, None));
    assert!(found.headers.normalize && found.headers.written.is_none());
    assert_eq!(found.headers.propagate, Propagate::W3c);
    assert_eq!((found.ingress, found.spool), (None, None));
}

#[test]
fn every_field_is_read() {
    let found = subscription(
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
  limits: {max_in_flight: 5, max_dispatch_per_sec: 7}
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
    assert_eq!(found.activation, Activation::Scheduled);
    assert_eq!(found.auth.as_deref(), Some("kafka_prod"));
    let connection = json!({"topic": "orders", "group": "noetl", "brokers": ["a:9092", "b:9092"]});
    assert_eq!(Some(&found.connection), connection.as_object());
    assert_eq!(found.runtime.target.as_deref(), Some("dedicated-pool"));
    assert_eq!((found.runtime.batch, found.runtime.timeout_ms), (Some(50), Some(2000)));
    assert_eq!(found.dispatch.execution_pool.as_deref(), Some("sub"));
    assert_eq!((found.dispatch.batch_dispatch, found.dispatch.batch_max), (true, 1000));
    assert_eq!((found.dedup.enabled, found.dedup.window_secs), (true, 60));
    assert_eq!((found.limits.max_in_flight, found.limits.max_dispatch_per_sec), (Some(5), Some(7)));
    assert!(!found.headers.normalize);
    assert_eq!(found.headers.directives[0].map["high"], "fast");
    assert_eq!(found.headers.directives[1].allowed, ["p/q"]);
    assert_eq!(found.headers.propagate, Propagate::None);
    assert_eq!(found.headers.baggage_allowlist, ["user"]);
    assert_eq!(found.headers.passthrough.as_deref(), Some("data"));
    assert_eq!(found.headers.written.expect("as written")["normalize"], false);
    let spool = found.spool.expect("a spool");
    assert_eq!((spool.mode, spool.backend), (SpoolMode::Hybrid, Some(SpoolBackend::S3)));
    assert_eq!((spool.bucket.as_deref(), spool.ordering), (Some("spool"), Ordering::PerKey));
    assert_eq!(spool.ordering_key.as_deref(), Some("order_id"));
    assert_eq!((spool.circuit.trip_after, spool.circuit.downstream.len()), (Some(3), 1));
    assert_eq!(spool.retention.on_full, Some(OnFull::DropToDlq));
    assert_eq!(spool.drain.on_recovery, Some(OnRecovery::Interleave));
    assert_eq!(spool.drain.max_replay_attempts, Some(5));
}

#[test]
fn a_push_subscription_says_how_senders_are_known() {
    let found = subscription(&push("{type: hmac_sha256, header: X-Sig, secret: alias}"));
    let ingress = found.ingress.expect("an ingress");
    assert_eq!((ingress.gateway_path.as_str(), ingress.listener()), ("/in/orders", "orders"));
    assert_eq!(ingress.verify.kind, VerifyKind::HmacSha256);
    assert_eq!(ingress.verify.header.as_deref(), Some("X-Sig"));
    for verify in
        ["{type: bearer, secret: alias}", "{type: pubsub_oidc, audience: a, service_account: b}"]
    {
        assert_eq!(report_spec(&push(verify)), "");
    }
    assert_snapshot!(report_spec(&push("{type: hmac_sha256}")), @"");
    assert_snapshot!(report_spec(&push("{type: bearer}")), @"");
    assert_snapshot!(report_spec(&push("{type: pubsub_oidc, audience: ''}")), @"");
    assert_snapshot!(report_spec(&push("{type: none}")), @"");
    assert_snapshot!(report_spec(&push("{type: hmac_sha1}")), @"");
    assert_snapshot!(report_spec(&push("{}")), @"");
    assert_snapshot!(report_spec(&push("7")), @"");
}

#[test]
fn a_gateway_path_is_absolute_and_names_a_listener() {
    let with = |ingress: &str| {
        let spec = "  source: webhook\n  mode: push\n  dispatch: {playbook: a/b}\n";
        report_spec(&format!("{spec}  ingress: {ingress}\n"))
    };
    assert_snapshot!(with("{verify: {type: bearer, secret: a}}"), @"");
    assert_snapshot!(with("{gateway_path: in/orders, verify: {type: bearer, secret: a}}"), @"");
    assert_snapshot!(with("{gateway_path: '', verify: {type: bearer, secret: a}}"), @"");
    assert_snapshot!(with("{gateway_path: //, verify: {type: bearer, secret: a}}"), @"");
    assert_snapshot!(with("{gateway_path: /in}"), @"");
    assert_snapshot!(with("[]"), @"");
}

#[test]
fn what_is_missing_is_named_all_at_once() {
    assert_snapshot!(report("kind: Subscription\n"), @"");
    assert_snapshot!(report("kind: subscription\nmetadata: {}\nspec: {}\n"), @"");
    assert_snapshot!(report_spec("  source: nats\n  mode: push\n"), @"");
    assert_snapshot!(report("kind: Playbook\napiVersion: noetl.io/v7\nmetadata: {path: 7}\nspec: []\n"), @"");
    assert_snapshot!(report("[]"), @"");
    assert_snapshot!(report("a: [1"), @"");
}

#[test]
fn words_and_numbers_are_those_that_are_possible() {
    assert_snapshot!(report_spec("
  source: rabbit
  mode: pul
  activation: sometimes
  dispatch: {playbook: '', batch_dispatch: 'yes', batch_max: 1001}
  dedup: {enabled: 1, window_secs: 0}
  limits: {max_in_flight: -1, max_dispatch_per_sec: 1.5}
  runtime: {batch: many}
  auth: 7
"), @"");
    assert_snapshot!(report_spec(&format!("{PULL}  dedup: on\n  limits: [1]\n  headers: x\n  spool: y\n")), @"");
}

#[test]
fn a_directive_names_its_header_and_what_it_decides() {
    let with =
        |directives: &str| report_spec(&format!("{PULL}  headers: {{directives: {directives}}}\n"));
    assert_snapshot!(with("[{header: x}, {controls: priority}, {header: 7, controls: [a]}, text]"), @"");
    assert_snapshot!(with("[{header: x, controls: dispatch.playbok}, {header: x, controls: dispatch.playbook}, {header: x, controls: priority}]"), @"");
    assert_snapshot!(with("{header: x}"), @"");
}

#[test]
fn a_spool_has_a_place_unless_it_is_off() {
    let with = |spool: &str| report_spec(&format!("{PULL}  spool: {spool}\n"));
    assert_eq!(with("{mode: off}"), "");
    assert_eq!(with("{mode: 'off', backend: s3}"), "");
    assert_eq!(with("{mode: buffer_and_ack, backend: local_disk, path: /var/spool}"), "");
    assert_snapshot!(with("{}"), @"");
    assert_snapshot!(with("{mode: hybrid}"), @"");
    assert_snapshot!(with("{mode: hybrid, backend: nats_object}"), @"");
    assert_snapshot!(with("{mode: hybrid, backend: local_disk, bucket: b}"), @"");
    assert_snapshot!(with("{mode: on, backend: tape, ordering: any, retention: {on_full: x}, drain: {on_recovery: y}}"), @"");
    let both = "{mode: hybrid, backend: gcs, bucket: b, ordering: global, drain: {on_recovery: interleave}}";
    assert_snapshot!(with(both), @"");
    assert_eq!(with(&both.replace("global", "per_key")), "");
}

#[test]
fn what_has_no_effect_is_mentioned() {
    assert_snapshot!(report_spec(&format!("{PULL}  ingress: {{gateway_path: /a}}\n  strem: x\n  spol: 1\n")), @"");
    let push = push("{type: bearer, secret: a, tokn: b}");
    assert_snapshot!(report_spec(&format!("{push}  activation: continuous\n")), @"");
}

#[test]
fn a_document_is_known_by_its_kind_whatever_the_case() {
    assert!(is_subscription("kind: subscription"));
    assert!(is_subscription(&format!("{HEAD}{PULL}")));
    for text in ["kind: Playbook", "", "a: [1", "kind: [Subscription]", "[]"] {
        assert!(!is_subscription(text), "{text}");
    }
}

#[test]
fn a_spec_is_data_whatever_is_wrong_with_it() {
    assert_eq!(subscription_spec("spec: {mode: 7}"), Some(json!({"mode": 7})));
    for text in ["spec:", "a: [1", "", "[]", "spec: {a: .nan}"] {
        assert_eq!(subscription_spec(text), None, "{text}");
    }
}
