//! Learns the heartbeat interval of a worker.

use std::time::Duration;

/// Minimum pause between two heartbeats that counts as a gap, unless the worker always pauses
/// longer.
const GAP: Duration = Duration::from_secs(20);

const REMEMBERED: usize = 3;

/// Last pauses between heartbeats of a worker. The interval of published workers is configurable
/// (15 s by default) and not sent to the server, so it is learned.
#[derive(Debug, Default)]
pub(super) struct Rhythm {
    pauses: Vec<Duration>,
    gap: Option<Duration>,
}

impl Rhythm {
    /// Records a heartbeat that arrived this long after the previous one.
    pub(super) fn arrived(&mut self, since: Option<Duration>) {
        let Some(since) = since else { return };
        // A third more than usual, which is 20 s for the default interval.
        let most = self.usual().map_or(GAP, |usual| GAP.max(usual * 4 / 3));
        if since > most {
            self.gap = self.gap.max(Some(since));
        }
        self.pauses.push(since);
        if self.pauses.len() > REMEMBERED {
            self.pauses.remove(0);
        }
    }

    /// Returns the longest gap whose leases aren't limited yet.
    pub(super) const fn gap(&self) -> Option<Duration> {
        self.gap
    }

    pub(super) fn gap_is_over(&mut self) {
        self.gap = None;
    }

    /// Returns the median of the last pauses, which neither an outage nor two heartbeats at once
    /// change.
    fn usual(&self) -> Option<Duration> {
        let mut pauses = self.pauses.clone();
        pauses.sort_unstable();
        pauses.get(pauses.len().saturating_sub(1) / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(pauses: &[u64]) -> Vec<u64> {
        let mut rhythm = Rhythm::default();
        let mut gaps = Vec::new();
        for seconds in pauses {
            rhythm.arrived(Some(Duration::from_secs(*seconds)));
            gaps.extend(rhythm.gap().map(|gap| gap.as_secs()));
            rhythm.gap_is_over();
        }
        gaps
    }

    #[test]
    fn a_pause_beyond_twenty_seconds_is_a_gap() {
        assert_eq!(gaps(&[15, 15, 20, 15, 21, 15, 60]), [21, 60]);
    }

    #[test]
    fn a_worker_with_a_longer_interval_has_gaps_beyond_that() {
        assert_eq!(gaps(&[1, 30, 30, 30, 30, 39, 30, 90, 30, 30]), [30, 30, 90]);
    }

    #[test]
    fn a_gap_stays_until_its_leases_are_limited() {
        let mut rhythm = Rhythm::default();
        for seconds in [25, 15] {
            rhythm.arrived(Some(Duration::from_secs(seconds)));
        }
        assert_eq!(rhythm.gap(), Some(Duration::from_secs(25)));
    }
}
