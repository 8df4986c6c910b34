//! Tracks commands that were found pending without an announcement, and when to announce each next.

use std::collections::HashMap;
use std::time::Duration;

use noetl_model::{CommandId, ExponentialBackoff};
use tokio::time::Instant;

/// Delay before a newly found command is announced. Its announcement may have been in flight
/// between the two queries.
pub(super) const DOUBT: Duration = Duration::from_secs(1);

/// Interval between the first and second announcement of a command.
const AGAIN: Duration = Duration::from_secs(10);

/// Shortest intervals between the announcements of a command.
const INTERVALS: ExponentialBackoff = ExponentialBackoff::new(AGAIN, Duration::from_secs(300));

/// Time for which a command is tracked after a scan last found it. Its announcement may be in
/// flight, or the command is done.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Limit of tracked commands. Commands found beyond it are tracked once there is room.
const KNOWN_MAX: usize = 200_000;

#[derive(Default)]
pub(super) struct AnnouncementRetries {
    known: HashMap<CommandId, Try>,
}

struct Try {
    /// Number of announcements made by this process since the last reset.
    count: u32,
    /// Number of the last announcement, part of its ID.
    number: u32,
    /// Time of the next announcement.
    next: Instant,
    /// Time a scan last found the command.
    seen: Instant,
}

impl AnnouncementRetries {
    /// Records that a command is pending without an announcement. Returns the number of the
    /// announcement to make now, if one is due.
    pub(super) fn due(&mut self, command: CommandId, now: Instant) -> Option<u32> {
        let is_full = self.known.len() >= KNOWN_MAX;
        let Some(known) = self.known.get_mut(&command) else {
            if !is_full {
                let next = now + DOUBT;
                self.known.insert(command, Try { count: 0, number: 0, next, seen: now });
            }
            return None;
        };
        known.seen = now;
        if now < known.next {
            return None;
        }
        known.count += 1;
        known.number += 1;
        known.next = now + INTERVALS.delay(known.count);
        Some(known.number)
    }

    /// Returns the next announcement number, because the stream already knows the current one.
    pub(super) fn skip(&mut self, command: CommandId) -> u32 {
        match self.known.get_mut(&command) {
            Some(known) => {
                known.number += 1;
                known.number
            }
            None => 1,
        }
    }

    /// Resets all intervals because announcements were lost: every tracked command is due at once.
    pub(super) fn retry_now(&mut self, now: Instant) {
        for known in self.known.values_mut() {
            known.count = 0;
            known.next = now;
        }
    }

    /// Ends a scan and drops commands that no scan has found for a while. Returns the time of the
    /// next scan if it has to be sooner than usual.
    pub(super) fn end(&mut self, now: Instant) -> Option<Instant> {
        self.known.retain(|_, known| now < known.seen + REMEMBERED);
        let fresh = self.known.values().filter(|known| known.count == 0 && known.seen == now);
        fresh.map(|known| known.next).max()
    }

    pub(super) fn clear(&mut self) {
        self.known.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_doubted_first_and_then_announced_after_longer_and_longer_pauses() {
        let mut tries = AnnouncementRetries::default();
        let (command, start) = (CommandId::new(7), Instant::now());
        let mut look = |after: f64| {
            let now = start + Duration::from_secs_f64(after);
            let due = tries.due(command, now);
            let next = tries.end(now);
            (due, next.is_some())
        };
        assert_eq!(look(0.0), (None, true));
        assert_eq!(look(0.5), (None, true), "it is still doubted");
        assert_eq!(look(1.0), (Some(1), false));
        assert_eq!(look(10.9), (None, false));
        assert_eq!(look(11.0), (Some(2), false));
        assert_eq!(look(30.9), (None, false));
        assert_eq!(look(31.0), (Some(3), false));
        let mut at = 31.0;
        for count in 4..40 {
            at += 300.0;
            assert_eq!(look(at), (Some(count), false), "never later than the longest pause");
        }
    }

    #[test]
    fn a_lost_announcement_is_due_at_once_with_a_new_number() {
        let mut tries = AnnouncementRetries::default();
        let (command, now) = (CommandId::new(7), Instant::now());
        tries.due(command, now);
        assert_eq!(tries.due(command, now + DOUBT), Some(1));
        assert_eq!(tries.due(command, now + AGAIN), None);
        tries.retry_now(now + AGAIN);
        assert_eq!(tries.due(command, now + AGAIN), Some(2));
        assert_eq!(tries.due(command, now + AGAIN * 2), Some(3), "the first pause comes again");
    }

    #[test]
    fn missing_commands_are_forgotten_after_some_scans() {
        let mut tries = AnnouncementRetries::default();
        let now = Instant::now();
        assert_eq!(tries.due(CommandId::new(1), now), None);
        tries.end(now + REMEMBERED / 2);
        assert_eq!(tries.known.len(), 1, "its announcement may be on its way");
        tries.end(now + REMEMBERED);
        assert!(tries.known.is_empty());
    }

    #[test]
    fn a_number_that_is_taken_is_passed_over() {
        let mut tries = AnnouncementRetries::default();
        let (command, now) = (CommandId::new(1), Instant::now());
        tries.due(command, now);
        assert_eq!(tries.due(command, now + DOUBT), Some(1));
        assert_eq!(tries.skip(command), 2);
        assert_eq!(tries.due(command, now + DOUBT + AGAIN), Some(3), "the pause is the same");
        assert_eq!(tries.skip(CommandId::new(9)), 1);
    }
}
