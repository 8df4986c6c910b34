//! Properties of the step graph that decide joins, computed once per playbook version.
//!
//! Loops form a nesting forest. A strongly connected component with a cycle is a loop. Its header
//! is its first entry in document order, and the arcs inside it that lead to the header are its
//! *back arcs*. Nested loops are the cycles that remain without the back arcs. A back arc starts
//! its target at once and opens the next round. Every other arc leaves a token, and a step with
//! several incoming arcs waits while unfinished work *may reach* it in this round
//! ([`Graph::may_reach`]).
//!
//! Among waiting steps, there is always one that can start. Two steps that waited for each other
//! would lie on a cycle without a back arc of the smallest loop around both, but a loop without its
//! back arcs has no such cycle.

mod components;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

/// Index of a step in `workflow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepIx(pub u32);

impl StepIx {
    /// Returns the index into [`Playbook::steps`](crate::Playbook::steps).
    pub fn index(self) -> usize {
        usize::try_from(self.0).expect("the document limit keeps step counts far below usize")
    }
}

/// Maximum nesting depth of loops. Deeper graphs are rejected: no reader can follow them, and each
/// level costs a pass.
pub const LOOP_DEPTH_MAX: usize = 64;

/// Maximum product of joins and steps. Larger graphs are rejected, because the reachability
/// relation takes a bit for each pair.
pub const JOIN_PAIRS_MAX: usize = 4_000_000_000;

/// Error for a graph that exceeds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// Loops are nested too deeply.
    #[error("loops are nested more than {LOOP_DEPTH_MAX} deep")]
    TooDeep,
    /// The product of joins and steps is too large.
    #[error("{joins} joins among {steps} steps are more than this version works out")]
    TooManyJoins {
        /// Number of steps with several incoming arcs.
        joins: usize,
        steps: usize,
    },
}

/// A loop of the nesting forest.
#[derive(Debug)]
struct NestedLoop {
    header: usize,
    parent: Option<usize>,
}

/// An incoming arc of a step.
#[derive(Debug, Clone, Copy)]
struct Incoming {
    from: usize,
    /// Loop that the arc closes, if it is a back arc.
    closes: Option<usize>,
}

/// Relation between steps that decides joins.
#[derive(Debug)]
pub struct Graph {
    loops: Vec<NestedLoop>,
    /// Innermost loop around each step.
    innermost: Vec<Option<usize>>,
    incoming: Vec<Vec<Incoming>>,
    /// Whether an arc is a back arc, by step and index of the arc.
    back: Vec<Vec<bool>>,
    /// Steps that may reach each step. Computed on first use and cached, because most executions
    /// meet few joins of a large graph.
    reach: Vec<OnceLock<StepSet>>,
}

impl Graph {
    /// Builds the graph in which step `i` has arcs to `arcs[i]`.
    pub fn new(arcs: &[Vec<StepIx>], entry: StepIx) -> Result<Self, GraphError> {
        let steps = arcs.len();
        let targets: Vec<Vec<usize>> =
            arcs.iter().map(|to| to.iter().map(|ix| ix.index()).collect()).collect();
        let mut graph = Self {
            loops: Vec::new(),
            innermost: vec![None; steps],
            incoming: vec![Vec::new(); steps],
            back: targets.iter().map(|to| vec![false; to.len()]).collect(),
            reach: std::iter::repeat_with(OnceLock::new).take(steps).collect(),
        };
        let closes = graph.nest(&targets, entry.index())?;
        for (from, to) in targets.iter().enumerate() {
            for (place, &target) in to.iter().enumerate() {
                let closes = closes[from][place];
                graph.back[from][place] = closes.is_some();
                graph.incoming[target].push(Incoming { from, closes });
            }
        }
        let joins = graph.incoming.iter().filter(|arcs| arcs.len() > 1).count();
        if joins.saturating_mul(steps) > JOIN_PAIRS_MAX {
            return Err(GraphError::TooManyJoins { joins, steps });
        }
        Ok(graph)
    }

    /// Returns `true` if the arc at index `place` of `step` closes a loop.
    pub fn is_back_arc(&self, step: StepIx, place: usize) -> bool {
        self.back[step.index()][place]
    }

    /// Returns `true` if tokens at `step` may have to wait, because several arcs lead to it.
    pub fn is_join(&self, step: StepIx) -> bool {
        self.incoming[step.index()].len() > 1
    }

    /// Returns `true` if any arc leads to `step`.
    pub fn has_incoming(&self, step: StepIx) -> bool {
        !self.incoming[step.index()].is_empty()
    }

    /// Returns the header of the smallest loop around `step` that `step` does not head itself. Each
    /// run of that header opens a round in which `step` may be reached once more.
    pub fn round_header(&self, step: StepIx) -> Option<StepIx> {
        let mut around = &self.loops[self.innermost[step.index()]?];
        while around.header == step.index() {
            around = &self.loops[around.parent?];
        }
        Some(StepIx(u32::try_from(around.header).expect("step places come from a StepIx")))
    }

    /// Returns `true` if work at `from` can still bring a token to `to` in this round: a path
    /// exists that does not pass through `to` and uses no back arc of a loop around `to`.
    pub fn may_reach(&self, from: StepIx, to: StepIx) -> bool {
        self.reach[to.index()].get_or_init(|| self.reaching(to.index())).contains(from.index())
    }

    fn reaching(&self, to: usize) -> StepSet {
        let mut seen = StepSet::new(self.innermost.len());
        let mut open = vec![to];
        while let Some(step) = open.pop() {
            for arc in &self.incoming[step] {
                let banned = arc.closes.is_some_and(|around| self.is_around(around, to));
                if !banned && arc.from != to && seen.insert(arc.from) {
                    open.push(arc.from);
                }
            }
        }
        seen
    }

    fn is_around(&self, around: usize, step: usize) -> bool {
        let mut next = self.innermost[step];
        while let Some(inner) = next {
            if inner == around {
                return true;
            }
            next = self.loops[inner].parent;
        }
        false
    }

    /// Fills `loops` and `innermost`. Returns the loop that each arc closes, if any.
    fn nest(
        &mut self,
        targets: &[Vec<usize>],
        entry: usize,
    ) -> Result<Vec<Vec<Option<usize>>>, GraphError> {
        let mut closes: Vec<Vec<Option<usize>>> =
            targets.iter().map(|to| vec![None; to.len()]).collect();
        let mut sources: Vec<Vec<(usize, usize)>> = vec![Vec::new(); targets.len()];
        for (from, to) in targets.iter().enumerate() {
            for (place, &target) in to.iter().enumerate() {
                sources[target].push((from, place));
            }
        }
        let mut scratch = components::Scratch::new(targets.len());
        let everything: Vec<usize> = (0..targets.len()).collect();
        let mut open = vec![(everything, None, 0)];
        // Number of the part that each step was last assigned to, so that a membership test is a
        // single comparison.
        let mut part = vec![0_usize; targets.len()];
        let mut parts = 0;
        while let Some((members, parent, depth)) = open.pop() {
            parts += 1;
            for &step in &members {
                part[step] = parts;
            }
            let inside = |from: usize, place: usize| {
                let to = targets[from][place];
                (part[to] == part[from] && closes[from][place].is_none()).then_some(to)
            };
            let cycles = scratch.cycles(&members, targets, inside);
            for cycle in cycles {
                if depth == LOOP_DEPTH_MAX {
                    return Err(GraphError::TooDeep);
                }
                parts += 1;
                for &step in &cycle {
                    part[step] = parts;
                }
                let outside = |&(from, place): &(usize, usize)| {
                    part[from] != parts && closes[from][place].is_none()
                };
                let entered = |step: &usize| *step == entry || sources[*step].iter().any(outside);
                let first = cycle.iter().copied().find(|step| entered(step));
                let header = first.unwrap_or(cycle[0]);
                let this = self.loops.len();
                self.loops.push(NestedLoop { header, parent });
                for &step in &cycle {
                    self.innermost[step] = Some(this);
                    for (place, &to) in targets[step].iter().enumerate() {
                        if to == header && closes[step][place].is_none() {
                            closes[step][place] = Some(this);
                        }
                    }
                }
                open.push((cycle, Some(this), depth + 1));
            }
        }
        Ok(closes)
    }
}

/// A set of steps with one bit per step.
#[derive(Debug)]
struct StepSet {
    words: Vec<u64>,
}

impl StepSet {
    fn new(steps: usize) -> Self {
        Self { words: vec![0; steps.div_ceil(64)] }
    }

    /// Adds a step. Returns `true` if it was not in the set.
    fn insert(&mut self, step: usize) -> bool {
        let word = &mut self.words[step / 64];
        let bit = 1 << (step % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn contains(&self, step: usize) -> bool {
        self.words[step / 64] & (1 << (step % 64)) != 0
    }
}
