//! `spool`: buffering of messages while executions cannot start.

use super::fields::{needed_word, positive, rate, section, text, word};
use crate::decode::context::Context;
use crate::decode::cursor::Cursor;
use crate::decode::value;
use crate::subscription::{
    Circuit, Drain, OnFull, OnRecovery, Ordering, Spool, SpoolBackend, SpoolMode, SpoolRetention,
};

const KEYS: &[&str] = &[
    "mode",
    "backend",
    "bucket",
    "path",
    "credential",
    "ordering",
    "ordering_key",
    "circuit",
    "retention",
    "drain",
];
const CIRCUIT_KEYS: &[&str] = &["trip_after", "probe_after_ms", "probe_interval_ms", "downstream"];
const RETENTION_KEYS: &[&str] = &["max_age_hours", "max_bytes", "on_full"];
const DRAIN_KEYS: &[&str] = &["rate_per_sec", "max_replay_attempts", "on_recovery"];

pub(super) fn decode(cx: &mut Context<'_>, spec: &Cursor<'_>) -> Option<Spool> {
    let at = section(cx, spec, "spool", KEYS)?;
    if at.get("mode").is_none() {
        let help = "write 'mode: buffer_and_ack', 'mode: hybrid' or 'mode: off'";
        cx.warning("W114", &at, "a spool without 'mode' is off", help);
    }
    let mode = word(cx, &at, "mode", SpoolMode::WORDS)
        .map_or(SpoolMode::Off, |word| SpoolMode::from_text(word).unwrap_or(SpoolMode::Off));
    let is_on = mode != SpoolMode::Off;
    let backend = match is_on {
        true => needed_word(cx, &at, "backend", SpoolBackend::WORDS),
        false => word(cx, &at, "backend", SpoolBackend::WORDS),
    };
    let backend = backend.and_then(SpoolBackend::from_text);
    let ordering = word(cx, &at, "ordering", Ordering::WORDS).and_then(Ordering::from_text);
    let spool = Spool {
        mode,
        backend,
        bucket: text(cx, &at, "bucket"),
        path: text(cx, &at, "path"),
        credential: text(cx, &at, "credential"),
        ordering: ordering.unwrap_or(Ordering::Global),
        ordering_key: text(cx, &at, "ordering_key"),
        circuit: circuit(cx, &at),
        retention: retention(cx, &at),
        drain: drain(cx, &at),
    };
    if let (true, Some(backend)) = (is_on, backend) {
        let place = match backend {
            SpoolBackend::NatsObject | SpoolBackend::Gcs | SpoolBackend::S3 => "bucket",
            SpoolBackend::LocalDisk => "path",
        };
        if at.get(place).is_none() {
            let message = format!("a spool in {} needs '{place}'", backend.as_str());
            cx.error("E080", &at, message, format!("add '{place}: …'"));
        }
    }
    // Messages replayed between new ones cannot preserve the global arrival order.
    let is_mixed = spool.drain.on_recovery == Some(OnRecovery::Interleave);
    if let (Some(Ordering::Global), true, Some(key)) = (ordering, is_mixed, at.key("ordering")) {
        let message = "'ordering: global' and 'drain.on_recovery: interleave' exclude each other";
        let help = "write 'on_recovery: ordered_then_live', or 'ordering: per_key'";
        cx.error_at("E081", key, message, help);
    }
    Some(spool)
}

fn circuit(cx: &mut Context<'_>, at: &Cursor<'_>) -> Circuit {
    let Some(at) = section(cx, at, "circuit", CIRCUIT_KEYS) else { return Circuit::default() };
    let mut downstream = Vec::new();
    if let Some(value) = at.get("downstream") {
        if !value.is_list() {
            cx.expected(&value, "a list", "write '- {name: …, type: …, target: …}'");
        }
        downstream = value.items().map(|item| value::literal(cx, &item)).collect();
    }
    Circuit {
        trip_after: positive(cx, &at, "trip_after"),
        probe_after_ms: positive(cx, &at, "probe_after_ms"),
        probe_interval_ms: positive(cx, &at, "probe_interval_ms"),
        downstream,
    }
}

fn retention(cx: &mut Context<'_>, at: &Cursor<'_>) -> SpoolRetention {
    let Some(at) = section(cx, at, "retention", RETENTION_KEYS) else {
        return SpoolRetention::default();
    };
    SpoolRetention {
        max_age_hours: positive(cx, &at, "max_age_hours"),
        max_bytes: positive(cx, &at, "max_bytes"),
        on_full: word(cx, &at, "on_full", OnFull::WORDS).and_then(OnFull::from_text),
    }
}

fn drain(cx: &mut Context<'_>, at: &Cursor<'_>) -> Drain {
    let Some(at) = section(cx, at, "drain", DRAIN_KEYS) else { return Drain::default() };
    let on_recovery = word(cx, &at, "on_recovery", OnRecovery::WORDS);
    Drain {
        rate_per_sec: rate(cx, &at, "rate_per_sec"),
        max_replay_attempts: positive(cx, &at, "max_replay_attempts"),
        on_recovery: on_recovery.and_then(OnRecovery::from_text),
    }
}
