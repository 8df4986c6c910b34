//! Time-ordered 64-bit IDs: `(ms since 2024-01-01) << 22 | machine << 12 | sequence`.

use std::fmt;

use crate::Timestamp;

/// 2024-01-01T00:00:00Z in Unix milliseconds: epoch of the layout, shared with published workers.
const EPOCH_MS: i64 = 1_704_067_200_000;
const MACHINE_BITS: u32 = 10;
const SEQUENCE_BITS: u32 = 12;
const TIME_SHIFT: u32 = MACHINE_BITS + SEQUENCE_BITS;
const SEQUENCE_MAX: i64 = (1 << SEQUENCE_BITS) - 1;

/// Machine ID, 0 to 1,023. Two generators with the same machine ID could mint equal IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineId(u16);

impl MachineId {
    /// Largest machine ID of the layout.
    pub const MAX: u16 = (1 << MACHINE_BITS) - 1;

    /// Creates a machine ID, or returns `None` if `number` exceeds [`MachineId::MAX`].
    pub const fn new(number: u16) -> Option<Self> {
        if number <= Self::MAX { Some(Self(number)) } else { None }
    }
}

impl fmt::Display for MachineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Generator of strictly increasing IDs, independent of clock behavior.
///
/// If the clock moves backward, or more than 4,096 IDs are minted in a millisecond, the IDs run
/// ahead of the clock. They neither repeat nor wait.
#[derive(Debug, Clone)]
pub struct Snowflakes {
    machine: MachineId,
    millisecond: i64,
    sequence: i64,
}

impl Snowflakes {
    /// Creates a generator for this machine that has minted no IDs.
    pub fn new(machine: MachineId) -> Self {
        Self { machine, millisecond: -1, sequence: SEQUENCE_MAX }
    }

    /// Returns the smallest ID that could be minted at this time. All smaller IDs are older.
    pub fn first_at(at: Timestamp) -> i64 {
        let millisecond = (at.as_millis() - EPOCH_MS).clamp(0, i64::MAX >> TIME_SHIFT);
        millisecond << TIME_SHIFT
    }

    /// Switches to another machine ID for subsequent IDs, which keep increasing.
    pub fn change_machine(&mut self, machine: MachineId) {
        self.machine = machine;
        // Start a new millisecond: the new machine ID may already have minted in the current one.
        self.sequence = SEQUENCE_MAX;
    }

    /// Mints the next ID at `now`.
    pub fn mint(&mut self, now: Timestamp) -> i64 {
        let millisecond = (now.as_millis() - EPOCH_MS).max(0);
        if millisecond > self.millisecond {
            self.millisecond = millisecond;
            self.sequence = 0;
        } else if self.sequence < SEQUENCE_MAX {
            self.sequence += 1;
        } else {
            self.millisecond += 1;
            self.sequence = 0;
        }
        self.millisecond << TIME_SHIFT | i64::from(self.machine.0) << SEQUENCE_BITS | self.sequence
    }

    /// Makes every later ID larger than `newest`, an ID found in a log that is ahead of the clock.
    pub fn advance_past(&mut self, newest: i64) {
        let millisecond = newest >> TIME_SHIFT;
        if millisecond >= self.millisecond {
            self.millisecond = millisecond;
            self.sequence = SEQUENCE_MAX;
        }
    }

    /// Returns the time at which an ID was minted, with millisecond precision.
    pub const fn time_of(id: i64) -> Timestamp {
        Timestamp::from_millis((id >> TIME_SHIFT) + EPOCH_MS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn machine(number: u16) -> MachineId {
        MachineId::new(number).expect("a number below 1024")
    }

    #[test]
    fn the_layout_is_the_published_one() {
        let mut ids = Snowflakes::new(machine(5));
        let at = Timestamp::from_millis(EPOCH_MS + 7);
        assert_eq!(ids.mint(at), 7 << 22 | 5 << 12);
        assert_eq!(ids.mint(at), 7 << 22 | 5 << 12 | 1);
        assert_eq!(Snowflakes::time_of(7 << 22 | 5 << 12), at);
    }

    #[test]
    fn machine_numbers_end_at_1023() {
        assert!(MachineId::new(1023).is_some());
        assert_eq!(MachineId::new(1024), None);
    }

    #[test]
    fn ids_go_past_a_log_that_is_ahead_of_the_clock() {
        let mut ids = Snowflakes::new(machine(1));
        let newest = 1_000 << 22 | 900 << 12 | 4095;
        ids.advance_past(newest);
        assert!(ids.mint(Timestamp::from_millis(EPOCH_MS)) > newest);
    }

    proptest! {
        #[test]
        fn ids_grow_whatever_the_clock_does(times in prop::collection::vec(0_i64..50, 1..20_000)) {
            let mut ids = Snowflakes::new(machine(1));
            let mut last = -1;
            for ms in times {
                let id = ids.mint(Timestamp::from_millis(EPOCH_MS + ms));
                prop_assert!(id > last);
                last = id;
            }
        }
    }
}
