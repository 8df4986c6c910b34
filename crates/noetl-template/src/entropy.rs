//! Random numbers that repeat with their seed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Deterministic source of random numbers. Clones share a sequence, and equal seeds yield equal
/// sequences.
#[derive(Debug, Clone, Default)]
pub struct Entropy(Arc<AtomicU64>);

impl Entropy {
    /// Creates the sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seed)))
    }

    /// Returns the current position in the sequence.
    pub fn position(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Rewinds to a position, so that the same numbers are drawn again.
    pub fn rewind(&self, to: u64) {
        self.0.store(to, Ordering::Relaxed);
    }

    pub(super) fn draw(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// Draws the next number of the sequence as a fraction: at least 0 and below 1.
    pub fn chance(&self) -> f64 {
        /// Number of bits that a float represents exactly.
        const BITS: u32 = 53;
        let bits = mix(self.draw()) >> (u64::BITS - BITS);
        #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
        let (drawn, all) = (bits as f64, (1_u64 << BITS) as f64);
        drawn / all
    }
}

/// Hashes a seed with SplitMix64. Adjacent seeds yield unrelated numbers.
pub(super) fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
