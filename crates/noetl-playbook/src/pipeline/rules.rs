//! Policy rules: selection of the matching rule, and evaluation of its parameters.

use noetl_model::Failure;
use noetl_template::{RenderError, Scope, ValueTemplate};
use serde_json::{Value, json};

use super::writes::{EvaluatedAssignment, rendered};
use super::{Action, Backoff, PolicyRule, Retry};

/// Default maximum number of attempts.
const ATTEMPTS: u32 = 3;

/// Default delay in seconds before the second attempt.
const DELAY: f64 = 1.0;

/// Maximum delay in seconds, regardless of the rule, its backoff, or a `Retry-After`: 30 days.
const PAUSE_MAX: f64 = 30.0 * 24.0 * 3600.0;

#[derive(Debug)]
pub struct MatchedRule {
    /// Index of the rule in its list.
    pub rule: usize,
    /// Rendered assignments, to be applied before the action.
    pub set: Vec<EvaluatedAssignment>,
}

/// Error in a part of the playbook that evaluation uncovered.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleError {
    /// Key below the task: `url`, `input.page`, `rule 2 attempts`.
    pub key: String,
    pub message: String,
    /// Source of the template, if the error is in one.
    pub expression: Option<String>,
}

impl std::fmt::Display for RuleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

impl RuleError {
    pub(super) fn render(key: impl Into<String>, error: &RenderError) -> Self {
        Self {
            key: key.into(),
            message: error.to_string(),
            expression: Some(error.template.clone()),
        }
    }

    fn value(key: String, value: &Value, expected: &str) -> Self {
        Self { key, message: format!("{value} is not {expected}"), expression: None }
    }

    /// Prefixes the key with another key.
    #[must_use]
    pub fn with_prefix(mut self, key: &str) -> Self {
        self.key = format!("{key} {}", self.key);
        self
    }

    /// Returns the entries for a failure's details.
    pub(super) fn details(&self, task: &str) -> Value {
        let mut details = json!({"task": task, "key": self.key});
        if let Some(expression) = &self.expression {
            details["expression"] = expression.as_str().into();
        }
        details
    }
}

/// Returns the first rule whose condition is true in `scope`. The caller must have set the envelope
/// of `output` in the scope.
pub fn judge(rules: &[PolicyRule], scope: &Scope) -> Result<Option<MatchedRule>, RuleError> {
    for (place, rule) in rules.iter().enumerate() {
        let name = format!("rule {}", place + 1);
        let holds =
            rule.when.holds(scope).map_err(|e| RuleError::render("when", &e).with_prefix(&name))?;
        if holds {
            let set = rendered(&rule.set, scope).map_err(|trouble| trouble.with_prefix(&name))?;
            return Ok(Some(MatchedRule { rule: place, set }));
        }
    }
    Ok(None)
}

impl PolicyRule {
    /// Returns the delay before the next attempt in seconds, or `None` if the rule does not retry
    /// or the attempts are used up.
    ///
    /// `attempt` is the number of attempts so far, from 1. A `retry_after` from a remote service is
    /// the minimum, even if it exceeds `max_delay`: an earlier attempt would be rejected.
    pub fn pause(
        &self,
        scope: &Scope,
        attempt: u32,
        failure: Option<&Failure>,
    ) -> Result<Option<f64>, RuleError> {
        match &self.action {
            Action::Retry(retry) => retry.pause(scope, attempt, failure),
            _ => Ok(None),
        }
    }
}

impl Retry {
    fn pause(
        &self,
        scope: &Scope,
        attempt: u32,
        failure: Option<&Failure>,
    ) -> Result<Option<f64>, RuleError> {
        if attempt >= self.attempts(scope)? {
            return Ok(None);
        }
        let base = seconds("delay", self.delay.as_ref(), scope)?.unwrap_or(DELAY);
        let growth = match self.backoff {
            Backoff::Fixed => 1.0,
            Backoff::Linear => f64::from(attempt),
            Backoff::Exponential => 2.0_f64.powf(f64::from(attempt) - 1.0),
        };
        // A zero delay stays zero for any growth, even if the growth is infinite.
        let mut pause = if base == 0.0 { 0.0 } else { (base * growth).min(PAUSE_MAX) };
        if let Some(most) = seconds("max_delay", self.max_delay.as_ref(), scope)? {
            pause = pause.min(most);
        }
        if let Some(jitter) = number("jitter", self.jitter.as_ref(), scope)? {
            let (jitter, value) = jitter;
            if !(0.0..=1.0).contains(&jitter) {
                return Err(RuleError::value("jitter".to_owned(), &value, "between 0 and 1"));
            }
            pause *= 1.0 - jitter * scope.entropy.chance();
        }
        let least = failure.and_then(retry_after).unwrap_or(0.0);
        Ok(Some(pause.max(least).min(PAUSE_MAX)))
    }

    fn attempts(&self, scope: &Scope) -> Result<u32, RuleError> {
        let Some((attempts, value)) = number("attempts", self.attempts.as_ref(), scope)? else {
            return Ok(ATTEMPTS);
        };
        if attempts < 1.0 || attempts.fract() != 0.0 {
            return Err(RuleError::value("attempts".to_owned(), &value, "a whole number from 1"));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is at least 1, and too many are as good as the most"
        )]
        Ok(attempts.min(f64::from(u32::MAX)) as u32)
    }
}

fn seconds(
    key: &str,
    template: Option<&ValueTemplate>,
    scope: &Scope,
) -> Result<Option<f64>, RuleError> {
    match number(key, template, scope)? {
        Some((seconds, value)) if seconds < 0.0 => {
            Err(RuleError::value(key.to_owned(), &value, "a number of seconds from 0"))
        }
        valid => Ok(valid.map(|(seconds, _)| seconds)),
    }
}

/// Renders a number, or text that parses as one. A template that renders to null counts as absent.
fn number(
    key: &str,
    template: Option<&ValueTemplate>,
    scope: &Scope,
) -> Result<Option<(f64, Value)>, RuleError> {
    let Some(template) = template else { return Ok(None) };
    let value = template.render(scope).map_err(|error| RuleError::render(key, &error))?;
    let number = match &value {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    match number.filter(|number| number.is_finite()) {
        Some(number) => Ok(Some((number, value))),
        None => Err(RuleError::value(key.to_owned(), &value, "a number")),
    }
}

/// Returns the `retry_after` of a failure in seconds, if it is positive.
fn retry_after(failure: &Failure) -> Option<f64> {
    let asked = failure.details.as_deref()?.get("retry_after")?;
    let seconds = match asked {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0)
}
