//! Loops: their items, the items that may run, and their end (rules R2 and R3).

use std::sync::Arc;

use noetl_model::event::{CommandSpec, LoopEvent, LoopFact, LoopItem};
use noetl_model::loops::{LoopItems, LoopStarted, StageClosed};
use noetl_model::{CommandId, CommandState, Fact, Failure, FailureKind, Value};
use noetl_playbook::document::{
    FailureMode, LoopExec, LoopMode, LoopSource, LoopSpec, Step, StepWork,
};
use noetl_template::{Iteration, Scope};

use super::{collection, render, timeouts};
use crate::draft::Draft;
use crate::loops::LoopState;
use crate::scope;

impl Draft<'_, '_> {
    /// Renders the items of a loop, records them, and issues the first ones.
    pub(super) fn begin_loop(
        &mut self,
        step: &Step,
        repeat: &LoopSpec,
        run: u32,
        from: Option<Arc<str>>,
    ) {
        let scope = scope::tool_scope(self, from.as_deref());
        let limit = self.in_flight(repeat, &scope);
        let items = match &repeat.over {
            LoopSource::Items(items) => render::render(items, &scope, "loop.in").map(Some),
            LoopSource::Cursor(_) => Ok(None),
        };
        let (items, limit) = match self.rendered(&scope, items) {
            // A value is missing, so the decision is undone.
            None => return,
            Some(Err(message)) => return self.exit_unrendered(step, run, message),
            Some(Ok(items)) => match limit {
                Ok(limit) => (items, limit),
                Err(message) => return self.exit_unrendered(step, run, message),
            },
        };
        let items = match items.map(collection::items).transpose() {
            Ok(items) => items,
            Err(message) => return self.exit_misled(step, run, message),
        };
        let most = self.moment.caps.loop_items;
        let total = items.as_ref().map(|items| u32::try_from(items.len()).unwrap_or(u32::MAX));
        if let Some(total) = total.filter(|total| *total > most) {
            let message = format!(
                "the loop has {total} items, more than the limit of {most}; raise \
                 NOETL_LOOP_ITEMS_MAX, or go through them with a cursor"
            );
            return self.exit_misled(step, run, message);
        }
        if repeat.exec == LoopExec::Local
            && let (StepWork::Pipeline(_), Some(items)) = (&step.work, &items)
        {
            let local = collection::local(repeat, items, limit);
            if let Err(message) = self.issue_local(step, run, &scope, local) {
                self.exit_unrendered(step, run, message);
            }
            return;
        }
        let frame = match &repeat.over {
            LoopSource::Items(_) => Ok(None),
            LoopSource::Cursor(cursor) => timeouts::frame_sizes(&cursor.frame, &step.name, &scope),
        };
        if self.misses(&scope) {
            return;
        }
        let frame = match frame {
            Ok(frame) => frame,
            Err(failure) => {
                self.inline_visits += 1;
                return self.exit_failed(&step.name, run, failure);
            }
        };
        let started = LoopStarted { total, max_in_flight: limit, from, frame };
        self.loop_fact(&step.name, run, LoopEvent::Started(started));
        for (from, items) in collection::chunks(items.unwrap_or_default()) {
            let recorded = LoopItems { from, items, frame: None };
            self.loop_fact(&step.name, run, LoopEvent::Items(recorded));
        }
        if total == Some(0) {
            self.inline_visits += 1;
        }
        self.advance_loop(&step.name, run);
    }

    /// Returns the maximum number of items in flight.
    fn in_flight(&self, repeat: &LoopSpec, scope: &Scope) -> Result<u32, String> {
        let is_cursor = matches!(repeat.over, LoopSource::Cursor(_));
        if repeat.mode == LoopMode::Sequential && !is_cursor {
            return Ok(1);
        }
        let Some(written) = &repeat.max_in_flight else {
            return Ok(if is_cursor { 1 } else { self.moment.caps.in_flight });
        };
        let value = render::render(written, scope, "loop.spec.max_in_flight")?;
        let number = match &value {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.trim().parse().ok(),
            // The value is not loaded.
            Value::Null if !scope.reach.needed().is_empty() => return Ok(1),
            _ => None,
        };
        let number = number.and_then(|number| u32::try_from(number).ok());
        number
            .filter(|number| *number > 0)
            .ok_or_else(|| format!("max_in_flight must be a whole number from 1, not {value}"))
    }

    /// Fails a step run whose loop cannot iterate over the rendered value.
    fn exit_misled(&mut self, step: &Step, run: u32, message: String) {
        self.inline_visits += 1;
        let failure = Failure::new(FailureKind::Config, message);
        self.exit_failed(&step.name, run, failure);
    }

    pub(super) fn loop_fact(&mut self, step: &Arc<str>, run: u32, what: LoopEvent) {
        let fact = LoopFact { step: step.clone(), run, what };
        self.record(Fact::Loop(Box::new(fact)));
    }

    /// Issues the items that may run now, or ends a loop that is finished.
    ///
    /// An item can end while it is issued. Then the call that issues it continues with the next
    /// one: a nested call for each item would overflow the stack.
    pub(crate) fn advance_loop(&mut self, name: &Arc<str>, run: u32) {
        let step_run_key = (name.clone(), run);
        if let Some((_, again)) = self.advancing.iter_mut().find(|(of, _)| *of == step_run_key) {
            *again = true;
            return;
        }
        self.advancing.push((step_run_key, false));
        loop {
            self.advance_loop_once(name, run);
            match self.advancing.last_mut() {
                Some((_, again)) if *again && self.needed.is_empty() => *again = false,
                _ => break,
            }
        }
        self.advancing.pop();
    }

    fn advance_loop_once(&mut self, name: &Arc<str>, run: u32) {
        let Some(ix) = self.playbook.find(name) else { return };
        let step = self.playbook.step(ix);
        let Some(repeat) = &step.repeat else { return };
        // A failing execution starts only its final step; it ends with its last command.
        if self.state.is_failing() && !self.is_final(name) {
            return;
        }
        let step_run_key = (name.clone(), run);
        if self.loop_state(&step_run_key).is_none() {
            return;
        }
        self.close_frames(&step_run_key);
        if self.has_failed(repeat, &step_run_key) {
            return self.stop_loop(name, run, &step_run_key);
        }
        self.hand_out_items(step, repeat, run, &step_run_key);
        // An item whose templates do not render fails as it is issued.
        if self.has_failed(repeat, &step_run_key) {
            return self.stop_loop(name, run, &step_run_key);
        }
        if let LoopSource::Cursor(cursor) = &repeat.over {
            self.claim_frames(step, cursor, run, &step_run_key);
        }
        if self.loop_state(&step_run_key).is_some_and(LoopState::is_over) {
            self.finish_loop(name, run, matches!(repeat.over, LoopSource::Cursor(_)));
        }
    }

    /// Returns `true` if a loop that stops at its first failure has a failed item.
    fn has_failed(&self, repeat: &LoopSpec, step_run_key: &(Arc<str>, u32)) -> bool {
        repeat.failure == FailureMode::FailFast
            && self.loop_state(step_run_key).is_some_and(|state| state.counters.failed > 0)
    }

    /// Stops a loop. Cancels pending commands, lets commands in flight and parked ones end, and
    /// fails the loop with the last of them.
    fn stop_loop(&mut self, name: &Arc<str>, run: u32, step_run_key: &(Arc<str>, u32)) {
        self.cancel_commands(|open| {
            open.issued.step == *name
                && open.issued.run == run
                && open.state == CommandState::Pending
                // An item with a split pipeline is in flight after its first segment.
                && open.issued.split().is_none_or(|split| split.segment == 0)
        });
        let Some(state) = self.loop_state(step_run_key).filter(|state| state.is_quiet()) else {
            return;
        };
        if let Some(failure) = state.failure() {
            self.exit_loop_failed(name, run, failure);
        }
    }

    pub(super) fn loop_state(&self, step_run_key: &(Arc<str>, u32)) -> Option<&LoopState> {
        self.state.loops.get(step_run_key)
    }

    fn hand_out_items(
        &mut self,
        step: &Step,
        repeat: &LoopSpec,
        run: u32,
        step_run_key: &(Arc<str>, u32),
    ) {
        let rows_at_once = match &repeat.over {
            LoopSource::Items(_) => None,
            LoopSource::Cursor(cursor) => {
                Some(self.frame_sizes(cursor, step_run_key).row_concurrency.max(1))
            }
        };
        while let Some((frame, item)) = self.next_item(step_run_key, rows_at_once) {
            self.issue_item(step, repeat, run, step_run_key, frame, item);
            let is_gone = self.loop_state(step_run_key).is_none();
            let fails = repeat.failure == FailureMode::FailFast;
            let failed =
                self.loop_state(step_run_key).is_some_and(|state| state.counters.failed > 0);
            if is_gone || (fails && failed) || !self.needed.is_empty() {
                return;
            }
        }
    }

    /// Returns the next item that may run, and its frame if the loop has a cursor.
    fn next_item(
        &self,
        step_run_key: &(Arc<str>, u32),
        rows_at_once: Option<u32>,
    ) -> Option<(Option<u32>, u32)> {
        let state = self.loop_state(step_run_key)?;
        let most = rows_at_once.unwrap_or(state.counters.max_in_flight);
        let ready = state.spans.iter().find(|(_, span)| span.next < span.rows && span.open < most);
        ready.map(|(frame, span)| (rows_at_once.map(|_| *frame), span.first + span.next))
    }

    fn issue_item(
        &mut self,
        step: &Step,
        repeat: &LoopSpec,
        run: u32,
        step_run_key: &(Arc<str>, u32),
        frame: Option<u32>,
        index: u32,
    ) {
        let Some(state) = self.loop_state(step_run_key) else { return };
        let (from, total) = (state.from.clone(), state.counters.total);
        let item = LoopItem { index, total, frame, claims: false };
        let scope = self.item_scope(repeat, step_run_key, from.as_deref(), index);
        if let Err(message) = self.issue(step, &step.work, run, &scope, Some(item.clone())) {
            self.fail_unrendered(step, run, item, message);
        }
    }

    /// Issues an item of a loop again, or claims its rows, as the current playbook version renders
    /// it.
    pub(crate) fn reissue_item(&mut self, step: &Step, run: u32, item: &LoopItem) {
        let Some(repeat) = &step.repeat else { return };
        let step_run_key = (step.name.clone(), run);
        match &repeat.over {
            LoopSource::Cursor(cursor) if item.claims => {
                self.claim_frame(step, cursor, run, &step_run_key, item.clone());
            }
            _ => self.issue_item(step, repeat, run, &step_run_key, item.frame, item.index),
        }
    }

    /// Returns the template scope of one item.
    pub(super) fn item_scope(
        &self,
        repeat: &LoopSpec,
        step_run_key: &(Arc<str>, u32),
        from: Option<&str>,
        place: u32,
    ) -> Scope {
        let mut scope = scope::tool_scope(self, from);
        scope.step = self.state.locals(&step_run_key.0, step_run_key.1);
        let state = self.loop_state(step_run_key);
        let location = state.and_then(|state| state.place_of(place));
        let item = location.map(|(chunk, offset)| {
            let chunk = scope.reach.data(chunk);
            chunk.get_item_by_index(offset).unwrap_or_default()
        });
        scope.iteration = Some(Iteration {
            name: repeat.iterator.clone(),
            item: item.unwrap_or_default().into(),
            index: place,
            total: state.and_then(|state| state.counters.total),
            vars: Arc::default(),
        });
        scope
    }

    /// Fails an item whose templates do not render. The item gets a command of its own, so that it
    /// is counted and shown like any other.
    pub(super) fn fail_unrendered(
        &mut self,
        step: &Step,
        run: u32,
        item: LoopItem,
        message: String,
    ) {
        let (config, input) = (noetl_model::Map::new(), noetl_model::Map::new());
        let issued = Arc::new(CommandSpec {
            step: step.name.clone(),
            run,
            attempt: 1,
            tool: Arc::from("noop"),
            config,
            input,
            timeout_ms: None,
            scope: None,
            item: Some(item),
            idempotent: true,
            pool: self.state.pool(),
            trace: self.state.trace(),
        });
        let command: CommandId = self.record(Fact::CommandIssued(issued.clone())).into();
        let failure = Failure::new(FailureKind::TemplateError, message);
        let of = super::issue::item_of(&issued);
        let name = step.name.clone();
        self.record(Fact::CommandFailed { command, step: name, failure, item: of });
    }

    /// Retries a failed row up to `max_attempts`. Otherwise advances the loop without it.
    pub(super) fn item_failed(&mut self, issued: &Arc<CommandSpec>) {
        let ix = self.playbook.find(&issued.step);
        let repeat = ix.and_then(|ix| self.playbook.step(ix).repeat.as_ref());
        let tries = match repeat.map(|repeat| &repeat.over) {
            Some(LoopSource::Cursor(cursor)) => {
                let step_run_key = (issued.step.clone(), issued.run);
                self.frame_sizes(cursor, &step_run_key).max_attempts
            }
            _ => 1,
        };
        let attempt = issued.split().map_or(issued.attempt, |split| split.attempt);
        if attempt < tries && !self.state.is_failing() {
            if issued.split().is_some() {
                return self.restart_split(issued, attempt + 1);
            }
            let again = Arc::new(CommandSpec { attempt: attempt + 1, ..(**issued).clone() });
            let command: CommandId = self.record(Fact::CommandIssued(again.clone())).into();
            if self.is_control_tool(&again) {
                self.claim_control_tool(command, &again, None);
            }
            return;
        }
        self.advance_loop(&issued.step, issued.run);
    }

    fn finish_loop(&mut self, name: &Arc<str>, run: u32, is_cursor: bool) {
        let Some(state) = self.loop_state(&(name.clone(), run)) else { return };
        let (stats, frames) = (state.stats(), state.counters.full_frames);
        if is_cursor {
            let closed = StageClosed { frames, rows: stats.total, failed: stats.failed };
            self.loop_fact(name, run, LoopEvent::StageClosed(closed));
        }
        self.loop_fact(name, run, LoopEvent::Done(stats));
        self.exit_done(name, run);
    }

    /// Fails a loop and its step, and cancels the loop's commands in flight.
    pub(super) fn exit_loop_failed(&mut self, name: &Arc<str>, run: u32, failure: Failure) {
        self.cancel_commands(|open| open.issued.step == *name && open.issued.run == run);
        self.exit_failed(name, run, failure);
    }
}
