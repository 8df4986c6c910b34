//! Control-plane tools: child executions, waits, and approvals.
//!
//! The control plane claims such a command under its own name and parks it, so the command occupies
//! no worker slot, and listings show it like any other command.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::event::{BlobRef, Callback, ChildExecution, CommandSpec, ParkReason};
use noetl_model::parked::CONTROL_PLANE;
use noetl_model::{
    CatalogId, CommandId, ExecutionId, Fact, Failure, FailureKind, Map, Timestamp, Value,
};
use noetl_playbook::Playbook;
use noetl_playbook::assignment::SetScope;
use noetl_playbook::document::{ControlTool, ControlToolKind, StepWork};
use noetl_playbook::pipeline::{Action, RuleError, judge};
use noetl_template::{Scope, StepOutput, ValueSlot, from_json};
use sha2::{Digest, Sha256};

use super::split::is_call;
use crate::draft::{CALLBACK_WAIT, Draft};
use crate::scope;

/// Longest wait in seconds: 10 years, longer than any intended wait and far from overflow.
const WAIT_MAX: f64 = 10.0 * 365.0 * 24.0 * 3600.0;

impl Draft<'_, '_> {
    /// Claims a command that was just issued for the control plane, and parks it. Fails it instead
    /// if `misled` is set.
    pub(crate) fn claim_control_tool(
        &mut self,
        command: CommandId,
        issued: &Arc<CommandSpec>,
        misled: Option<Failure>,
    ) {
        let (step, worker) = (issued.step.clone(), Arc::from(CONTROL_PLANE));
        self.record(Fact::CommandClaimed { command, step, worker });
        match misled {
            None => self.park_control_tool(command, issued),
            Some(failure) => self.control_tool_ended(command, issued, Err(failure), None),
        }
    }

    /// Returns `true` if the control plane runs the command itself.
    pub(crate) fn is_control_tool(&self, issued: &CommandSpec) -> bool {
        is_call(issued) || own_of(self.playbook, &issued.step).is_some()
    }

    /// Parks a command on the timer, child execution, or answer it waits for.
    pub(crate) fn park_control_tool(&mut self, command: CommandId, issued: &Arc<CommandSpec>) {
        let kind = match is_call(issued) {
            true => Some(ControlToolKind::Playbook),
            false => own_of(self.playbook, &issued.step).map(|own| own.kind),
        };
        let Some(kind) = kind else { return };
        let on = match kind {
            ControlToolKind::Wait => self.waited_until(issued).map(ParkReason::Until),
            ControlToolKind::Playbook => {
                self.child(issued).map(|child| ParkReason::Child(Box::new(child)))
            }
            ControlToolKind::Approval => self.callback(command, issued).map(ParkReason::Callback),
        };
        match on {
            Ok(on) => {
                let is_sent = matches!(&on, ParkReason::Child(child) if !child.waits);
                let answer = sent(&on);
                let step = issued.step.clone();
                self.record(Fact::CommandParked { command, step, on });
                if is_sent {
                    self.control_tool_ended(command, issued, Ok(answer), None);
                }
            }
            Err(message) => {
                let failure = Failure::new(FailureKind::Config, message);
                self.control_tool_ended(command, issued, Err(failure), None);
            }
        }
    }

    /// Ends a command of the control plane after applying the step's policy rules to its outcome.
    pub(crate) fn control_tool_ended(
        &mut self,
        command: CommandId,
        issued: &Arc<CommandSpec>,
        outcome: Result<Value, Failure>,
        reference: Option<Arc<BlobRef>>,
    ) {
        if is_call(issued) {
            return self.call_ended(command, issued, outcome, reference);
        }
        let verdict = match own_of(self.playbook, &issued.step) {
            Some(own) if !own.rules.is_empty() => self.judge(own, issued, &outcome),
            _ => Some(Ok(Verdict::Natural)),
        };
        let (outcome, verdict) = match verdict {
            // A value is missing, so the decision is undone.
            None => return,
            Some(Ok(verdict)) => (outcome, verdict),
            Some(Err(message)) => {
                (Err(Failure::new(FailureKind::TemplateError, message)), Verdict::Natural)
            }
        };
        let step = issued.step.clone();
        match (outcome, verdict) {
            (outcome, Verdict::Again(seconds)) => {
                let next = CommandSpec { attempt: issued.attempt + 1, ..(**issued).clone() };
                self.retry_own(command, issued, outcome.err(), next, seconds);
            }
            (Ok(data), Verdict::Natural | Verdict::Accept) => {
                self.record(Fact::CallDone { command, step, data, reference, run: None });
                self.completed(command, issued);
            }
            (Err(failure), Verdict::Accept) => {
                let data = crate::values::failed_value(&failure);
                self.record(Fact::CallDone { command, step, data, reference: None, run: None });
                self.completed(command, issued);
            }
            (Err(failure), Verdict::Natural | Verdict::Refuse) => {
                self.failed(command, issued, tried(failure, issued.attempt));
            }
            (Ok(data), Verdict::Refuse) => {
                let message = format!("a rule of step '{}' says that this is a failure", step);
                let failure = Failure::new(FailureKind::Unknown, message);
                self.failed(command, issued, failure.with_details(data));
            }
        }
    }

    /// Fails a command of the control plane and parks the next attempt for `seconds`.
    pub(super) fn retry_own(
        &mut self,
        command: CommandId,
        issued: &Arc<CommandSpec>,
        failure: Option<Failure>,
        next: CommandSpec,
        seconds: f64,
    ) {
        let until = self.moment.now.plus(length(seconds));
        let step = issued.step.clone();
        let failure = failure
            .unwrap_or_else(|| Failure::new(FailureKind::Unknown, "a rule asked for another try"));
        let item = super::issue::item_of(issued);
        self.record(Fact::CommandFailed { command, step: step.clone(), failure, item });
        let id: CommandId = self.record(Fact::CommandIssued(Arc::new(next))).into();
        let worker = Arc::from(CONTROL_PLANE);
        self.record(Fact::CommandClaimed { command: id, step: step.clone(), worker });
        self.record(Fact::CommandParked { command: id, step, on: ParkReason::Retry(until) });
    }

    /// Returns the verdict of the first matching rule, or `None` if a value is missing.
    fn judge(
        &mut self,
        own: &ControlTool,
        issued: &CommandSpec,
        outcome: &Result<Value, Failure>,
    ) -> Option<Result<Verdict, String>> {
        let mut scope = scope::tool_scope(self, None);
        let (data, failure) = match outcome {
            Ok(data) => (ValueSlot::Held(from_json(data)), None),
            Err(failure) => {
                let details = failure.details.as_deref().map(from_json).unwrap_or_default();
                (ValueSlot::Held(details), Some(Arc::new(failure.clone())))
            }
        };
        scope.output = Some(StepOutput { data, failure, envelope_first: true });
        let acted = self.act(own, issued, outcome.as_ref().err(), &scope);
        self.rendered(&scope, acted)
    }

    fn act(
        &mut self,
        own: &ControlTool,
        issued: &CommandSpec,
        failure: Option<&Failure>,
        scope: &Scope,
    ) -> Result<Verdict, RuleError> {
        let Some(judged) = judge(&own.rules, scope)? else { return Ok(Verdict::Natural) };
        let rule = &own.rules[judged.rule];
        let verdict = match &rule.action {
            Action::Continue | Action::Break => Verdict::Accept,
            // The playbook decoder rejects `jump` here: there is no other task.
            Action::Fail | Action::Jump(_) => Verdict::Refuse,
            Action::Retry(_) => match rule.pause(scope, issued.attempt, failure)? {
                Some(seconds) => Verdict::Again(seconds),
                None if failure.is_some() => Verdict::Natural,
                None => Verdict::Refuse,
            },
        };
        if scope.reach.needed().is_empty() {
            let (mut values, mut locals) = (Map::new(), Map::new());
            for write in judged.set {
                match write.scope {
                    SetScope::Ctx => values.insert(write.path.join("."), write.value),
                    SetScope::Step => locals.insert(write.path.join("."), write.value),
                    // No later task of the iteration could read the value.
                    SetScope::Iter => None,
                };
            }
            self.write_context(issued, values, locals);
        }
        Ok(verdict)
    }

    fn waited_until(&self, issued: &CommandSpec) -> Result<Timestamp, String> {
        let find = |name: &str| issued.config.get(name).or_else(|| issued.input.get(name));
        if let Some(until) = find("until").filter(|until| !until.is_null()) {
            let text = until.as_str().unwrap_or_default();
            return text.parse().map_err(|_| {
                format!("`until` must be a time such as 2030-01-31T08:00:00Z, not {until}")
            });
        }
        let names = ["seconds", "duration", "for", "delay"];
        let Some(value) = names.into_iter().find_map(find) else {
            return Err("a wait needs `seconds`, `duration` or `until`".to_owned());
        };
        let seconds = seconds(value).ok_or_else(|| {
            format!("a wait is a number of seconds or a text such as 30s, not {value}")
        })?;
        Ok(self.moment.now.plus(length(seconds)))
    }

    fn child(&mut self, issued: &CommandSpec) -> Result<ChildExecution, String> {
        let config = &issued.config;
        let text = |name: &str| config.get(name).and_then(Value::as_str).map(Arc::<str>::from);
        let path = text("path").filter(|path| !path.is_empty());
        let catalog = match config.get("catalog_id") {
            None | Some(Value::Null) => None,
            Some(id) => {
                let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
                let wrong = |_| format!("`catalog_id` must be a decimal id, not {id}");
                Some(id.parse::<CatalogId>().map_err(wrong)?)
            }
        };
        if path.is_none() && catalog.is_none() {
            return Err("the playbook to call has neither a `path` nor a `catalog_id`".to_owned());
        }
        let version = match config.get("version") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) if text == "latest" => None,
            Some(version) => {
                let number = version.as_u64().or_else(|| version.as_str()?.parse().ok());
                let number = number.and_then(|number| u32::try_from(number).ok());
                let wrong = || format!("`version` must be a whole number, not {version}");
                Some(number.ok_or_else(wrong)?)
            }
        };
        let depth = self.state.started.as_ref().map_or(0, |started| started.depth) + 1;
        if depth > self.moment.caps.depth {
            return Err(format!(
                "playbooks call one another {depth} deep, more than the limit of {}; raise \
                 NOETL_PLAYBOOK_DEPTH_MAX if that is meant",
                self.moment.caps.depth
            ));
        }
        let returns = text("return_step").or_else(|| text("result_step"));
        let asks = config.get("return_result").and_then(Value::as_bool) == Some(true);
        let waits = match config.get("wait").and_then(Value::as_bool) {
            Some(waits) => waits,
            None => returns.is_some() || asks,
        };
        let until = issued.timeout_ms.map(|ms| self.moment.now.plus(Duration::from_millis(ms)));
        let execution = ExecutionId::new((self.moment.ids)().get());
        let until = until.filter(|_| waits);
        Ok(ChildExecution { execution, path, catalog, version, waits, returns, until, depth })
    }

    fn callback(&mut self, command: CommandId, issued: &CommandSpec) -> Result<Callback, String> {
        let wait = issued.timeout_ms.map_or(CALLBACK_WAIT, Duration::from_millis);
        let until = self.moment.now.plus(wait);
        Ok(Callback { token: self.token(command), until })
    }

    /// Returns an unguessable callback token, derived from the decision's entropy.
    pub(crate) fn token(&self, command: CommandId) -> Arc<str> {
        let mut hash = Sha256::new();
        hash.update(self.moment.entropy.position().to_be_bytes());
        hash.update(self.state.id.get().to_be_bytes());
        hash.update(command.get().to_be_bytes());
        let hex: String =
            hash.finalize().iter().take(20).map(|byte| format!("{byte:02x}")).collect();
        Arc::from(hex)
    }
}

/// Returns the control-plane tool of a step, or `None` if the step has none.
fn own_of<'p>(playbook: &'p Playbook, step: &str) -> Option<&'p ControlTool> {
    match &playbook.step(playbook.find(step)?).work {
        StepWork::Own(own) => Some(own),
        StepWork::Route | StepWork::Tool(_) | StepWork::Pipeline(_) | StepWork::Split(_) => None,
    }
}

/// Verdict of a step's policy rules on an outcome.
enum Verdict {
    /// Keeps the outcome as it is.
    Natural,
    /// Succeeds, whatever the outcome.
    Accept,
    /// Fails, whatever the outcome.
    Refuse,
    /// Retries after this number of seconds.
    Again(f64),
}

/// Returns the result of a command that does not wait for the child execution it starts.
fn sent(on: &ParkReason) -> Value {
    let ParkReason::Child(child) = on else { return Value::Null };
    serde_json::json!({
        "status": "started",
        "execution_id": child.execution.to_string(),
        "path": child.path,
        "async": true,
    })
}

/// Adds the number of attempts to the failure's details if there was more than one.
fn tried(mut failure: Failure, attempts: u32) -> Failure {
    if attempts > 1 {
        let mut details = match failure.details.take().map(|details| *details) {
            Some(Value::Object(details)) => details,
            Some(other) => Map::from_iter([("data".to_owned(), other)]),
            None => Map::new(),
        };
        details.insert("attempts".to_owned(), attempts.into());
        failure.details = Some(Box::new(Value::Object(details)));
    }
    failure
}

/// Converts seconds to a duration, clamped to 0 through [`WAIT_MAX`].
fn length(seconds: f64) -> Duration {
    let seconds = if seconds.is_finite() { seconds } else { WAIT_MAX };
    Duration::from_secs_f64(seconds.clamp(0.0, WAIT_MAX))
}

/// Parses a duration, given as a number of seconds or a text such as `30s`. Returns `None` if it is
/// negative or not finite.
fn seconds(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| noetl_playbook::seconds_in(value.as_str()?))?;
    (number.is_finite() && number >= 0.0).then_some(number)
}
