//! Converts between schedule rows and their definition. Columns contain the playbook and the time;
//! `meta` contains the rest, and its other keys are preserved.

use noetl_model::{Map, Timestamp, Value};
use noetl_playbook::Schedule;
use noetl_playbook::schedule::{Cron, MissedRunPolicy, OverlapPolicy, Trigger, ZONE, Zone};
use noetl_store::ScheduleRow;

/// Timing policy of a schedule.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SchedulePlan {
    pub(super) when: Trigger,
    pub(super) missed: MissedRunPolicy,
    pub(super) overlap: OverlapPolicy,
}

impl SchedulePlan {
    /// Parses a row. Rows may predate validation, so each part may be invalid.
    pub(super) fn from_row(row: &ScheduleRow) -> Result<Self, String> {
        let said = &row.schedule;
        let at = text(row, "at");
        let when = match (&said.cron, said.interval_seconds, at) {
            (Some(cron), _, _) => {
                let cron = Cron::read(cron).map_err(|error| error.to_string())?;
                let name = said.timezone.as_deref().unwrap_or(ZONE);
                let zone = Zone::named(name);
                Trigger::Cron { cron, zone: zone.ok_or_else(|| format!("no time zone '{name}'"))? }
            }
            (None, Some(0), _) => return Err("an interval of no seconds".to_owned()),
            (None, Some(seconds), _) => Trigger::Every { seconds },
            (None, None, Some(at)) => {
                Trigger::Once { at: at.parse().map_err(|_| format!("'{at}' is no time"))? }
            }
            // A row with nothing but a next run time runs once, then.
            (None, None, None) => match said.next_run_at {
                Some(at) => Trigger::Once { at },
                None => return Err("nothing says when it runs".to_owned()),
            },
        };
        let missed = text(row, "missed").and_then(|word| MissedRunPolicy::from_text(&word));
        let overlap = text(row, "overlap").and_then(|word| OverlapPolicy::from_text(&word));
        Ok(Self { when, missed: missed.unwrap_or_default(), overlap: overlap.unwrap_or_default() })
    }
}

/// Columns that define the time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ScheduleTimes {
    pub(super) cron: Option<String>,
    pub(super) timezone: Option<String>,
    pub(super) interval_seconds: Option<u32>,
    pub(super) at: Option<String>,
}

impl ScheduleTimes {
    pub(super) fn from_trigger(when: &Trigger) -> Self {
        match when {
            Trigger::Cron { cron, zone } => Self {
                cron: Some(cron.as_str().to_owned()),
                timezone: Some(zone.name().to_owned()),
                ..Self::default()
            },
            Trigger::Every { seconds } => {
                Self { interval_seconds: Some(*seconds), ..Self::default() }
            }
            Trigger::Once { at } => Self { at: Some(at.to_string()), ..Self::default() },
        }
    }

    pub(super) fn of_row(row: &ScheduleRow) -> Self {
        let said = &row.schedule;
        Self {
            cron: said.cron.clone(),
            timezone: said.timezone.clone(),
            interval_seconds: said.interval_seconds,
            at: text(row, "at"),
        }
    }
}

/// Returns the `meta` of a schedule, merged into the existing one.
pub(super) fn meta(
    known: Option<&ScheduleRow>,
    name: Option<String>,
    document: Option<&str>,
    schedule: &Schedule,
) -> Value {
    let mut meta = match known.and_then(|row| row.schedule.meta.clone()) {
        Some(Value::Object(meta)) => meta,
        _ => Map::new(),
    };
    let columns = ScheduleTimes::from_trigger(&schedule.when);
    for (key, said) in [
        ("name", name),
        ("document", document.map(str::to_owned)),
        ("at", columns.at),
        ("missed", Some(schedule.missed.as_str().to_owned())),
        ("overlap", Some(schedule.overlap.as_str().to_owned())),
        ("execution_pool", schedule.execution_pool.clone()),
    ] {
        match said {
            Some(said) => drop(meta.insert(key.to_owned(), Value::from(said))),
            None => drop(meta.remove(key)),
        }
    }
    Value::Object(meta)
}

/// Returns a row in the form of a document's `spec`.
pub(super) fn spec_of(row: &ScheduleRow) -> Map {
    let said = &row.schedule;
    let fields = [
        ("playbook", Some(Value::from(said.path.clone()))),
        ("version", said.version.map(Value::from)),
        ("cron", said.cron.clone().map(Value::from)),
        ("timezone", said.timezone.clone().filter(|_| said.cron.is_some()).map(Value::from)),
        ("every", said.interval_seconds.map(Value::from)),
        ("at", text(row, "at").map(Value::from)),
        ("missed", text(row, "missed").map(Value::from)),
        ("overlap", text(row, "overlap").map(Value::from)),
        ("payload", said.payload.clone().filter(|payload| !payload.is_null())),
        ("execution_pool", pool_of(row).map(Value::from)),
    ];
    fields.into_iter().filter_map(|(name, said)| Some((name.to_owned(), said?))).collect()
}

/// Returns the first run of a schedule that is created or enabled now. A one-time schedule has a
/// run until it has run.
pub(super) fn first(when: &Trigger, last: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    match when {
        Trigger::Once { at } if last.is_some_and(|last| last >= *at) => None,
        when => when.first(now),
    }
}

pub(super) fn name_of(row: &ScheduleRow) -> Option<String> {
    text(row, "name")
}

pub(super) fn document_of(row: &ScheduleRow) -> Option<String> {
    text(row, "document")
}

pub(super) fn pool_of(row: &ScheduleRow) -> Option<String> {
    text(row, "execution_pool")
}

fn text(row: &ScheduleRow, key: &str) -> Option<String> {
    row.schedule.meta.as_ref()?.get(key)?.as_str().map(str::to_owned)
}
