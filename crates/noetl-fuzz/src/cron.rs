//! Cron expressions in zones, from any time on.

use noetl_model::Timestamp;
use noetl_playbook::schedule::{Cron, Trigger, Zone};

/// Times asked for, one after the other.
const TIMES: usize = 8;

/// Reads an expression, and behind NULs a zone and a time in microseconds.
///
/// What is read is written as it was, its times go forward, and asking from between two of them
/// gives the second.
pub fn cron(data: &[u8]) {
    let (expression, rest) = crate::halves::halves(data);
    let (zone, from) = crate::halves::halves(rest);
    let Ok(expression) = std::str::from_utf8(expression) else { return };
    let Ok(cron) = Cron::read(expression) else { return };
    assert_eq!(Cron::read(cron.as_str()).as_ref(), Ok(&cron), "it is read as it is written");
    let zone = std::str::from_utf8(zone).ok().and_then(Zone::named);
    let zone = zone.unwrap_or_else(|| Zone::named("UTC").expect("UTC is a zone"));
    let from = std::str::from_utf8(from).ok().and_then(|from| from.trim().parse().ok());
    let when = Trigger::Cron { cron, zone };
    let mut at = Timestamp::from_micros(from.unwrap_or(1_704_067_200_000_000));
    for _ in 0..TIMES {
        let Some(next) = when.first(at) else { return };
        assert!(next > at, "{next} is not after {at}");
        // Rounded down, so that it is before the second even where they are next to each other.
        let between = at.as_micros() + (next.as_micros() - at.as_micros()) / 2;
        let again = when.next(at, Timestamp::from_micros(between));
        assert_eq!(again, Some(next), "from {at} on");
        at = next;
    }
}
