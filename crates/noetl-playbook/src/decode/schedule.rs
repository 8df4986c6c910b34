//! `kind: Schedule`: times at which a playbook starts.

use noetl_model::Timestamp;
use serde_json::Value;

use super::context::Context;
use super::cursor::Cursor;
use super::subscription::fields::{flag, integer_within, needed_text, text, word};
use super::{duration, keys, open, suggest, value};
use crate::diagnostic::Diagnostic;
use crate::schedule::{
    Cron, MissedRunPolicy, OverlapPolicy, Schedule, Trigger, ZONE, Zone, zone_names,
};

const KEYS: &[&str] = &["apiVersion", "kind", "metadata", "spec"];
const API_VERSIONS: &[&str] = &["noetl.io/v1", "noetl.io/v2", "noetl.io/v10"];
const SPEC_KEYS: &[&str] = &[
    "playbook",
    "version",
    "cron",
    "timezone",
    "every",
    "at",
    "missed",
    "overlap",
    "enabled",
    "payload",
    "execution_pool",
];

/// Keys that determine the run times. Exactly one must be present.
const WHEN: [&str; 3] = ["cron", "every", "at"];

/// Maximum interval in seconds: one year.
const EVERY_MAX: f64 = 365.0 * 24.0 * 3600.0;

/// Result of checking a schedule with [`check_schedule`].
#[derive(Debug)]
pub struct CheckedSchedule {
    /// Decoded schedule. Present if and only if no diagnostic is an error.
    pub schedule: Option<Schedule>,
    /// All diagnostics, sorted by position.
    pub diagnostics: Vec<Diagnostic>,
}

/// Returns `true` if the document's `kind` is `schedule`, ignoring case.
pub fn is_schedule(text: &str) -> bool {
    let (_, root) = open(text);
    let kind = root.as_ref().and_then(|root| Cursor::root(root).get("kind")?.text().map(is_kind));
    kind.unwrap_or(false)
}

fn is_kind(text: &str) -> bool {
    text.eq_ignore_ascii_case("schedule")
}

/// Parses and checks a schedule document.
pub fn check_schedule(text: &str) -> CheckedSchedule {
    let (mut cx, root) = open(text);
    let schedule = root.and_then(|node| decode(&mut cx, &Cursor::root(&node)));
    let schedule = schedule.filter(|_| !cx.findings.has_errors());
    CheckedSchedule { schedule, diagnostics: cx.findings.into_sorted() }
}

fn decode(cx: &mut Context<'_>, root: &Cursor<'_>) -> Option<Schedule> {
    let help = "a schedule begins with 'apiVersion: noetl.io/v1' and 'kind: Schedule'";
    if !cx.is_map(root, help) {
        return None;
    }
    keys::warn_unknown(cx, root, KEYS, keys::none);
    kind(cx, root);
    let (name, path) = metadata(cx, root);
    let Some(spec) = root.get("spec") else {
        let help = "add 'spec: {playbook: …, cron: …}'";
        cx.error("E080", root, "the schedule has no 'spec'", help);
        return None;
    };
    if !cx.is_map(&spec, "write 'spec:' and its keys below") {
        return None;
    }
    keys::warn_unknown(cx, &spec, SPEC_KEYS, keys::none);
    let help = "say what is started: 'playbook: path/of/playbook'";
    let playbook = needed_text(cx, &spec, "playbook", help);
    let version = integer_within(cx, &spec, "version", 1..=u64::from(u32::MAX));
    let when = when(cx, &spec);
    let missed =
        word(cx, &spec, "missed", MissedRunPolicy::WORDS).and_then(MissedRunPolicy::from_text);
    let overlap =
        word(cx, &spec, "overlap", OverlapPolicy::WORDS).and_then(OverlapPolicy::from_text);
    let enabled = flag(cx, &spec, "enabled");
    let payload = spec.get("payload").map(|payload| {
        cx.is_map(&payload, "write 'payload: {name: value}'");
        value::literal(cx, &payload)
    });
    let execution_pool = text(cx, &spec, "execution_pool");
    Some(Schedule {
        name: name?,
        path: path?,
        playbook: playbook?,
        version: version.and_then(|version| version.try_into().ok()),
        when: when?,
        missed: missed.unwrap_or_default(),
        overlap: overlap.unwrap_or_default(),
        enabled,
        payload: match payload {
            Some(Value::Object(payload)) => payload,
            _ => serde_json::Map::new(),
        },
        execution_pool,
    })
}

fn kind(cx: &mut Context<'_>, root: &Cursor<'_>) {
    let help = "write 'kind: Schedule'";
    match root.get("kind") {
        Some(kind) if kind.text().is_some_and(is_kind) => {}
        Some(kind) => cx.error("E002", &kind, "the document is not a Schedule", help),
        None => cx.error("E002", root, "the document has no 'kind'", help),
    }
    let Some(version) = root.get("apiVersion") else { return };
    if !version.text().is_some_and(|text| API_VERSIONS.contains(&text)) {
        let help = "write 'apiVersion: noetl.io/v1'";
        cx.error("E001", &version, "the API version is not supported", help);
    }
}

/// Decodes the name and the path. If only one is present, it serves as both.
fn metadata(cx: &mut Context<'_>, root: &Cursor<'_>) -> (Option<String>, Option<String>) {
    let help = "add 'metadata: {name: nightly, path: schedules/nightly}'";
    let Some(at) = root.get("metadata") else {
        cx.error("E003", root, "the schedule has no 'metadata'", help);
        return (None, None);
    };
    if !cx.is_map(&at, help) {
        return (None, None);
    }
    let (name, path) = (text(cx, &at, "name"), text(cx, &at, "path"));
    if at.get("name").is_none() && at.get("path").is_none() {
        cx.error("E003", &at, "the schedule has neither name nor path", help);
    }
    (name.clone().or_else(|| path.clone()), path.or(name))
}

/// Decodes the run times from the one key of [`WHEN`] that is present.
fn when(cx: &mut Context<'_>, spec: &Cursor<'_>) -> Option<Trigger> {
    let present: Vec<&str> = WHEN.into_iter().filter(|name| spec.get(name).is_some()).collect();
    let zone = zone(cx, spec, present == ["cron"]);
    match present[..] {
        [] => {
            let help = "add 'cron: \"0 2 * * *\"', 'every: 15m' or 'at: 2030-01-01T12:00:00Z'";
            cx.error("E080", spec, "nothing says when the schedule runs", help);
            None
        }
        ["cron"] => {
            let cron = cron(cx, spec);
            Some(Trigger::Cron { cron: cron?, zone: zone? })
        }
        ["every"] => every(cx, spec),
        ["at"] => decode_at(cx, spec),
        [first, second, ..] => {
            let message = format!("'{first}' and '{second}' exclude each other");
            let help = "keep the one that says when the schedule runs";
            cx.error_at("E081", spec.key(second)?, message, help);
            None
        }
        [_] => None,
    }
}

fn cron(cx: &mut Context<'_>, spec: &Cursor<'_>) -> Option<Cron> {
    let written = text(cx, spec, "cron")?;
    match Cron::read(&written) {
        Ok(cron) => Some(cron),
        Err(error) => {
            cx.error("E081", &spec.get("cron")?, error.message, error.help);
            None
        }
    }
}

fn zone(cx: &mut Context<'_>, spec: &Cursor<'_>, counts: bool) -> Option<Zone> {
    let Some(value) = spec.get("timezone") else { return Zone::named(ZONE) };
    let name = text(cx, spec, "timezone")?;
    let zone = Zone::named(&name);
    if zone.is_none() {
        let names = zone_names();
        let close = suggest::closest(&name, names.iter().map(String::as_str));
        let close = close.map(|close| format!("did you mean '{close}'? ")).unwrap_or_default();
        let help = format!("{close}write a name of the IANA database, as Europe/Berlin");
        cx.error("E081", &value, format!("there is no time zone '{name}'"), help);
    } else if let (false, Some(key)) = (counts, spec.key("timezone")) {
        let message = "'timezone' has no effect without 'cron'";
        cx.warning_at("W114", key, message, "remove it");
    }
    zone
}

fn every(cx: &mut Context<'_>, spec: &Cursor<'_>) -> Option<Trigger> {
    let value = spec.get("every")?;
    let seconds = duration::seconds(&value).filter(|seconds| (1.0..=EVERY_MAX).contains(seconds));
    let whole = seconds.filter(|seconds| seconds.fract() == 0.0);
    let Some(seconds) = whole else {
        let help = "write seconds (900) or a number with a unit: 30s, 15m, 6h";
        cx.error("E081", &value, "this is no interval of 1 s to a year, in whole seconds", help);
        return None;
    };
    // The bounds check above guarantees that the value fits a u32.
    Some(Trigger::Every { seconds: seconds as u32 })
}

fn decode_at(cx: &mut Context<'_>, spec: &Cursor<'_>) -> Option<Trigger> {
    let written = text(cx, spec, "at")?;
    match written.parse::<Timestamp>() {
        Ok(at) => Some(Trigger::Once { at }),
        Err(_) => {
            let help = "write it with its offset, as '2030-01-01T12:00:00Z' or '…+01:00'";
            cx.error("E081", &spec.get("at")?, format!("'{written}' is no time"), help);
            None
        }
    }
}
