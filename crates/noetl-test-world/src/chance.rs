//! Random numbers that follow from a seed alone.

/// A pseudorandom stream, equal for equal seeds (SplitMix64).
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    /// Returns the stream of a seed for one purpose. Draws for one purpose do not change another.
    pub(crate) fn new(seed: u64, purpose: &str) -> Self {
        let mut chance = Self(seed);
        for byte in purpose.bytes() {
            chance.0 = chance.next() ^ u64::from(byte);
        }
        chance
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Draws a number below `end`; 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or_default()
    }

    /// Draws a number from `first` to `last`, inclusive.
    pub(crate) fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last.saturating_sub(first) + 1)
    }

    /// Returns `true` once in `cases` draws, on average.
    pub(crate) fn one_in(&mut self, cases: u64) -> bool {
        self.below(cases) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let index = self.below(u64::try_from(from.len()).unwrap_or_default());
        from.get(usize::try_from(index).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::Chance;

    #[test]
    fn a_seed_and_a_purpose_determine_the_random_numbers() {
        let draw = |seed, purpose| {
            let mut chance = Chance::new(seed, purpose);
            [chance.next(), chance.next()]
        };
        assert_eq!(draw(1, "faults"), draw(1, "faults"));
        assert_ne!(draw(1, "faults"), draw(2, "faults"));
        assert_ne!(draw(1, "faults"), draw(1, "work"));
    }

    #[test]
    fn draws_stay_within_bounds() {
        let mut chance = Chance::new(7, "bounds");
        let drawn: Vec<u64> = (0..200).map(|_| chance.between(3, 5)).collect();
        for wanted in 3..=5 {
            assert!(drawn.contains(&wanted));
        }
        assert!(drawn.iter().all(|number| (3..=5).contains(number)));
        assert_eq!(chance.below(0), 0);
    }
}
