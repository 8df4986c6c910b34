//! Which commands were found waiting without an announcement, and when each is announced next.

use std::collections::HashMap;
use std::time::Duration;

use noetl_model::CommandId;
use tokio::time::Instant;

/// How long a command that is found for the first time is left alone: it may be on its way between
/// two questions.
pub(super) const DOUBT: Duration = Duration::from_secs(1);

/// How long after the first announcement the second comes at the earliest; doubled each time.
const AGAIN: Duration = Duration::from_secs(10);

/// The longest between two.
const AGAIN_MAX: Duration = Duration::from_secs(300);

/// How long a command is remembered that no look has found since: its announcement is on its way, or it
/// is dealt with.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Commands remembered. Beyond it those that come later wait for a place.
const KNOWN_MAX: usize = 200_000;

#[derive(Default)]
pub(super) struct Tries {
    known: HashMap<CommandId, Try>,
}

struct Try {
    /// How often it was announced from here.
    count: u32,
    /// The number of its last announcement.
    number: u32,
    /// When the next is due.
    next: Instant,
    /// When a look last found it.
    seen: Instant,
}

impl Tries {
    /// Notes that a command waits without an announcement. The number of the one that is due now, if
    /// one is.
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
        known.next =
            now + AGAIN.saturating_mul(2_u32.saturating_pow(known.count - 1)).min(AGAIN_MAX);
        Some(known.number)
    }

    /// An announcement with this number was made by somebody before; the next one.
    pub(super) fn skip(&mut self, command: CommandId) -> u32 {
        match self.known.get_mut(&command) {
            Some(known) => {
                known.number += 1;
                known.number
            }
            None => 1,
        }
    }

    /// What was announced is lost: whatever waits is due at once, and the pauses begin anew.
    pub(super) fn hurry(&mut self, now: Instant) {
        for known in self.known.values_mut() {
            known.count = 0;
            known.next = now;
        }
    }

    /// Ends a look. When the next one is worth while, if that is sooner than usual.
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
        let mut tries = Tries::default();
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
    fn what_was_lost_is_due_at_once_with_a_number_of_its_own() {
        let mut tries = Tries::default();
        let (command, now) = (CommandId::new(7), Instant::now());
        tries.due(command, now);
        assert_eq!(tries.due(command, now + DOUBT), Some(1));
        assert_eq!(tries.due(command, now + AGAIN), None);
        tries.hurry(now + AGAIN);
        assert_eq!(tries.due(command, now + AGAIN), Some(2));
        assert_eq!(tries.due(command, now + AGAIN * 2), Some(3), "the first pause comes again");
    }

    #[test]
    fn what_is_not_found_any_more_is_forgotten_after_a_while() {
        let mut tries = Tries::default();
        let now = Instant::now();
        assert_eq!(tries.due(CommandId::new(1), now), None);
        tries.end(now + REMEMBERED / 2);
        assert_eq!(tries.known.len(), 1, "its announcement may be on its way");
        tries.end(now + REMEMBERED);
        assert!(tries.known.is_empty());
    }

    #[test]
    fn a_number_that_is_taken_is_passed_over() {
        let mut tries = Tries::default();
        let (command, now) = (CommandId::new(1), Instant::now());
        tries.due(command, now);
        assert_eq!(tries.due(command, now + DOUBT), Some(1));
        assert_eq!(tries.skip(command), 2);
        assert_eq!(tries.due(command, now + DOUBT + AGAIN), Some(3), "the pause is the same");
        assert_eq!(tries.skip(CommandId::new(9)), 1);
    }
}
