//! Join tokens at a step, and the conditions under which they start it (rules R5 and R6).

use std::sync::Arc;

use noetl_model::Fact;
use noetl_playbook::StepIx;
use noetl_playbook::document::JoinRule;

use crate::draft::{Activation, Draft};

impl Draft<'_, '_> {
    /// Accepts a token at `to`. If no other token can arrive, the token starts the step at once.
    pub(super) fn arrive(&mut self, to: StepIx, from: &Arc<str>) {
        let step = self.playbook.step(to);
        let starts = match step.join {
            JoinRule::Each => true,
            JoinRule::All => !self.playbook.graph.is_join(to),
            JoinRule::Any => {
                let late = self.state.rounds.get(&step.name) == Some(&self.round_of(to));
                if late || self.is_queued(to) {
                    self.drop_token(to);
                    return;
                }
                true
            }
        };
        if starts {
            let from = Some(from.clone());
            self.queue.push_back(Activation { step: to, tokens: 1, from, held: false });
        }
    }

    /// Drops one token at a step without starting the step.
    pub(super) fn drop_token(&mut self, at: StepIx) {
        let step = self.playbook.step(at).name.clone();
        if self.state.waiting.contains_key(&step) {
            self.record(Fact::TokensDropped { step, tokens: 1 });
        }
    }

    /// Returns the round of a step: the number of runs of the header of the cycle around it.
    pub(super) fn round_of(&self, step: StepIx) -> u32 {
        let header = self.playbook.graph.round_header(step);
        header.map_or(0, |header| self.state.last_run(&self.playbook.step(header).name))
    }

    /// Returns the first step, in document order, whose waiting tokens no unfinished step can still
    /// join.
    pub(super) fn next_to_fire(&self) -> Option<Activation> {
        let mut ready: Option<(StepIx, &Vec<Arc<str>>)> = None;
        for (name, tokens) in &self.state.waiting {
            let Some(step) = self.playbook.find(name) else { continue };
            let is_first = ready.is_none_or(|(first, _)| step < first);
            if is_first && !self.is_held_up(step) {
                ready = Some((step, tokens));
            }
        }
        ready.map(|(step, tokens)| Activation {
            step,
            tokens: u32::try_from(tokens.len()).unwrap_or(u32::MAX),
            from: tokens.last().cloned(),
            held: false,
        })
    }

    fn is_held_up(&self, step: StepIx) -> bool {
        let graph = &self.playbook.graph;
        let reaches = |name: &str| {
            self.playbook.find(name).is_some_and(|from| from != step && graph.may_reach(from, step))
        };
        self.state.running.keys().any(|(name, _)| reaches(name))
            || self.state.held.keys().any(|name| reaches(name))
            || self.state.waiting.keys().any(|name| reaches(name))
            || self.queue.iter().any(|next| next.step != step && graph.may_reach(next.step, step))
    }

    fn is_queued(&self, step: StepIx) -> bool {
        self.queue.iter().any(|next| next.step == step)
    }
}
