//! Makes one decision, and loads the values it needs if the state contains only references to them.

use std::sync::Arc;

use noetl_engine::{
    Claim, Decision, DecisionEnv, DecisionValues, Input, Rejection, ValueRef, decide,
    required_values,
};
use noetl_identity as ids;
use noetl_model::event::CommandSpec;
use noetl_model::{CommandId, Event, EventId, ExecutionId, Fact, Seq};
use noetl_store::StoreError;
use noetl_template::Entropy;

use super::SubmitError;
use super::writer::WriterDeps;
use crate::state_cache::CachedState;

/// Rounds of loading values for one decision. Each round loads every value the decision names, and
/// a value names at most one more, so a reasonable playbook never reaches this limit.
const ROUNDS_MAX: usize = 64;

/// Decided events that are not known to be in the store: those of in-flight batches, and those of
/// the current batch.
pub(super) type Uncommitted<'a> = [&'a [Arc<Event>]; 2];

/// Chooses the worker that claims a newly issued command, or `None` to leave it pending.
pub(super) type ClaimFor<'a> =
    &'a mut (dyn FnMut(CommandId, &Arc<CommandSpec>) -> Option<Arc<str>> + Send);

/// Decides an input on the state in `cached`, and applies the resulting events to it. Loads missing
/// values and decides again until the decision has all values it needs.
pub(super) async fn decide_on(
    parts: &WriterDeps,
    cached: &mut CachedState,
    uncommitted: Uncommitted<'_>,
    input: Input,
    given_id: Option<EventId>,
    claim_for: ClaimFor<'_>,
) -> Result<Decision, SubmitError> {
    let mut loaded = DecisionValues::new();
    let needed = required_values(&cached.playbook, &cached.state, &input);
    load(parts, cached.state.id(), needed, uncommitted, &mut loaded).await?;
    let entropy = Entropy::new(ids::entropy());
    // Copy of the input for the next round. An input that only records a report needs no values.
    let spare = (!matches!(input, Input::Keep(_))).then(|| input.clone());
    let mut input = input;
    for _ in 0..ROUNDS_MAX {
        let values = (loaded.clone(), entropy.clone());
        match (decide_once(parts, cached, values, input, given_id, claim_for), &spare) {
            (Err(Rejection::Need(places)), Some(copy)) => {
                load(parts, cached.state.id(), places, uncommitted, &mut loaded).await?;
                input = copy.clone();
            }
            (decided, _) => return decided.map_err(SubmitError::Refused),
        }
    }
    Err(SubmitError::Busy)
}

/// Decides the claim of a pending command. It needs no values and issues no command.
pub(super) fn decide_claim(
    parts: &WriterDeps,
    cached: &mut CachedState,
    claim: Claim,
) -> Result<Decision, Rejection> {
    let values = (DecisionValues::new(), Entropy::new(ids::entropy()));
    decide_once(parts, cached, values, Input::Claim(claim), None, &mut |_, _| None)
}

fn decide_once(
    parts: &WriterDeps,
    cached: &mut CachedState,
    (loaded, entropy): (DecisionValues, Entropy),
    input: Input,
    mut first_id: Option<EventId>,
    claim_for: ClaimFor<'_>,
) -> Result<Decision, Rejection> {
    let playbook = cached.playbook.clone();
    let mut env = DecisionEnv {
        now: parts.clock.now(),
        ids: &mut || first_id.take().unwrap_or_else(|| parts.ids.event()),
        entropy,
        env: parts.env.clone(),
        loaded,
        caps: parts.caps,
        notify: &|what| parts.notify.has_recipient(&playbook, what),
        traced: parts.traces.is_recording(),
        claim_for,
    };
    decide(&playbook, &mut cached.state, input, &mut env)
}

/// Loads the values at `places` into `loaded`, from uncommitted events or from the store.
async fn load(
    parts: &WriterDeps,
    execution: ExecutionId,
    places: Vec<ValueRef>,
    uncommitted: Uncommitted<'_>,
    loaded: &mut DecisionValues,
) -> Result<(), SubmitError> {
    for place in places {
        if loaded.has(&place) {
            continue;
        }
        match &place {
            ValueRef::Event { seq, .. } => {
                let here = uncommitted.iter().flat_map(|events| events.iter());
                let event = match here.into_iter().find(|event| event.seq == *seq) {
                    Some(event) => Some(event.clone()),
                    None => read(parts, execution, *seq).await?,
                };
                match event {
                    Some(event) => loaded.insert(&event),
                    None => loaded.insert_unreadable(place, "it is not in the log"),
                }
            }
            ValueRef::Blob(reference) => match parts.results.read(reference).await {
                Ok(bytes) => loaded.insert_blob(reference, &bytes),
                Err(error) if error.is_transient() => return Err(error.into()),
                Err(error) => loaded.insert_unreadable(place, &error.to_string()),
            },
        }
    }
    Ok(())
}

async fn read(
    parts: &WriterDeps,
    execution: ExecutionId,
    seq: Seq,
) -> Result<Option<Arc<Event>>, SubmitError> {
    let failed = |error: StoreError| SubmitError::Store(Arc::new(error));
    let before = Seq(seq.0.saturating_sub(1));
    let events = parts.store.read(execution, before, 1).await.map_err(failed)?;
    Ok(events.into_iter().find(|event| event.seq == seq).map(Arc::new))
}

/// Returns `true` if a later decision may need a value of this event, so the event has to stay in
/// memory while its commit is in flight.
pub(super) fn holds_a_value(event: &Event) -> bool {
    matches!(
        event.fact,
        Fact::PlaybookStarted(_)
            | Fact::CallDone { .. }
            | Fact::ContextUpdated { .. }
            | Fact::StepExited { .. }
            | Fact::Loop(_)
    )
}
