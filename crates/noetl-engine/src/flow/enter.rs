//! Entering a step: a new generation, and a command for its tool (rule R2).

use std::sync::Arc;

use noetl_model::event::Issued;
use noetl_model::{Fact, Failure, FailureKind, Map, Value};
use noetl_playbook::document::{Join, Step, Tool, Work};
use noetl_playbook::template::{RenderError, Scope};

use super::Activation;
use crate::decide::Draft;
use crate::{places, scope};

impl Draft<'_, '_> {
    pub(super) fn enter(&mut self, activation: Activation) {
        let playbook = self.playbook;
        let step = playbook.step(activation.step);
        let generation = self.state.generation(&step.name) + 1;
        let round = (step.join == Join::Any).then(|| self.round_of(activation.step));
        let tokens = activation.tokens;
        self.record(Fact::StepEntered { step: step.name.clone(), generation, tokens, round });
        match &step.work {
            Work::Tool(tool) => self.issue(step, tool, generation, activation.from.as_deref()),
            Work::Route | Work::Pipeline(_) | Work::Own(_) => {
                self.inline_visits += 1;
                self.exit_done(&step.name, generation);
            }
        }
    }

    fn issue(&mut self, step: &Step, tool: &Tool, generation: u32, from: Option<&str>) {
        let scope = scope::for_tool(self, from);
        let rendered = rendered(tool, &scope);
        if self.misses(&scope) {
            let previous = from.and_then(|step| self.state.results.get(step));
            let places = places::of_tool(tool, self.state, previous);
            self.need(places);
        }
        let rendered = match scope.reach.lost() {
            Some(lost) => Err(lost),
            None => rendered.map_err(|error| error.to_string()),
        };
        match rendered {
            // If something is missing this command is never seen; it stands for the one that
            // will be, so that what other branches need comes to light in the same try.
            _ if !self.needed.is_empty() => {
                let (config, input) = (Map::new(), Map::new());
                self.hand_out(step, tool, generation, config, input);
            }
            Ok((config, input)) => self.hand_out(step, tool, generation, config, input),
            Err(message) => {
                self.inline_visits += 1;
                let failure = Failure::new(FailureKind::TemplateError, message);
                self.exit_failed(&step.name, generation, failure);
            }
        }
    }

    /// Notes what the templates of a scope touched and did not find.
    pub(super) fn misses(&mut self, scope: &Scope) -> bool {
        let missing = scope.reach.needed();
        let any = !missing.is_empty();
        self.need(missing);
        any
    }

    fn hand_out(&mut self, step: &Step, tool: &Tool, generation: u32, config: Map, input: Map) {
        let timeout = tool.timeout.map(|limit| limit.as_millis());
        self.record(Fact::CommandIssued(Arc::new(Issued {
            step: step.name.clone(),
            generation,
            attempt: 1,
            tool: tool.kind.clone(),
            config,
            input,
            timeout_ms: timeout.map(|ms| u64::try_from(ms).unwrap_or(u64::MAX)),
            scope: None,
            item: None,
        })));
    }
}

fn rendered(tool: &Tool, scope: &Scope) -> Result<(Map, Map), RenderError> {
    Ok((object(tool.config.render(scope)?), object(tool.input.render(scope)?)))
}

/// The decoder makes both maps; anything else could only be an empty one.
fn object(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
