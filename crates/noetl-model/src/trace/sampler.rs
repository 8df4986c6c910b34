//! Sampling: decides which traces are recorded.

use super::{TraceContext, TraceId};

/// Fraction of all traces, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio(f64);

impl Ratio {
    /// Creates a ratio, or returns `None` outside 0 to 1.
    pub fn new(share: f64) -> Option<Self> {
        (0.0..=1.0).contains(&share).then_some(Self(share))
    }

    /// Returns `true` if the trace is sampled. Deterministic: every process decides alike for a
    /// trace ID.
    fn holds(self, id: TraceId) -> bool {
        // The lower 63 bits are random in every kind of ID. `f64` uses as many of them as it can
        // represent.
        let [.., a, b, c, d, e, f, g, h] = id.bytes();
        let low = u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1;
        let place = low as f64 / (1_u64 << 63) as f64;
        place < self.0
    }
}

/// Sampling of traces that start in this process.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum RootSampling {
    #[default]
    All,
    /// Records no new trace.
    None,
    /// Records a fraction of the traces.
    Share(Ratio),
}

/// Sampling policy for all traces.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    /// Policy for traces that start in this process.
    pub root: RootSampling,
    /// Whether the caller's sampling decision applies to traces that the caller started.
    pub follows_caller: bool,
}

impl Default for Sampler {
    /// Returns the default: record all traces that start here, and follow callers for theirs.
    fn default() -> Self {
        Self { root: RootSampling::All, follows_caller: true }
    }
}

impl Sampler {
    /// Returns `true` if a trace started by a caller is recorded.
    pub fn takes(&self, said: &TraceContext) -> bool {
        match self.follows_caller {
            true => said.trace.is_sampled(),
            false => self.takes_new(said.trace.id),
        }
    }

    /// Returns `true` if a trace that starts in this process is recorded.
    pub fn takes_new(&self, id: TraceId) -> bool {
        match self.root {
            RootSampling::All => true,
            RootSampling::None => false,
            RootSampling::Share(ratio) => ratio.holds(id),
        }
    }
}
