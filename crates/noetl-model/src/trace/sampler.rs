//! Which traces are recorded.

use super::{TraceContext, TraceId};

/// A share of all traces, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio(f64);

impl Ratio {
    /// A share; `None` outside 0 to 1.
    pub fn new(share: f64) -> Option<Self> {
        (0.0..=1.0).contains(&share).then_some(Self(share))
    }

    /// Whether a trace is among them. Every process that knows the trace's id comes to the same.
    fn holds(self, id: TraceId) -> bool {
        // The lower 63 bits are random in every kind of id; as many as a share can tell apart count.
        let [.., a, b, c, d, e, f, g, h] = id.bytes();
        let low = u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1;
        let place = low as f64 / (1_u64 << 63) as f64;
        place < self.0
    }
}

/// Which traces that begin here are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Root {
    #[default]
    All,
    /// None.
    None,
    /// Some.
    Share(Ratio),
}

/// Which traces are recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    /// Those that begin here.
    pub root: Root,
    /// Whether a caller's own choice counts for the caller's traces.
    pub follows_caller: bool,
}

impl Default for Sampler {
    /// All of those that begin here, and of others as their callers say.
    fn default() -> Self {
        Self { root: Root::All, follows_caller: true }
    }
}

impl Sampler {
    /// Whether a trace is recorded that began elsewhere.
    pub fn takes(&self, said: &TraceContext) -> bool {
        match self.follows_caller {
            true => said.trace.is_sampled(),
            false => self.takes_new(said.trace.id),
        }
    }

    /// Whether a trace is recorded that begins here.
    pub fn takes_new(&self, id: TraceId) -> bool {
        match self.root {
            Root::All => true,
            Root::None => false,
            Root::Share(ratio) => ratio.holds(id),
        }
    }
}
