//! One decision: with the values it touches loaded, where the state knows them only by their place.

use std::sync::Arc;

use noetl_engine::{Input, Loaded, Moment, Place, Refusal, decide, places_needed};
use noetl_model::{Event, EventId, ExecutionId, Fact, Seq};
use noetl_playbook::template::Entropy;
use noetl_store::StoreError;

use super::SubmitError;
use super::writer::WriterParts;
use crate::cache::Cached;
use crate::ids;

/// How often a decision may name further values it needs. Each round loads all it can name, and a
/// value names at most another, so this is never reached by a sensible playbook.
const ROUNDS_MAX: usize = 64;

/// Events that are decided and not yet known to be in the store: of batches under way, and of the
/// batch in the making.
pub(super) type Uncommitted<'a> = [&'a [Arc<Event>]; 2];

/// Decides an input on the state of an item, which then has the events folded in.
pub(super) async fn decide_on(
    parts: &WriterParts,
    cached: &mut Cached,
    uncommitted: Uncommitted<'_>,
    input: Input,
    given_id: Option<EventId>,
) -> Result<Vec<Event>, SubmitError> {
    let mut loaded = Loaded::new();
    let needed = places_needed(&cached.playbook, &cached.state, &input);
    load(parts, cached.state.id(), needed, uncommitted, &mut loaded).await?;
    let entropy = Entropy::new(ids::entropy());
    let mut first_id = given_id;
    // What is kept of it for another try: all of it but what decides nothing.
    let spare = (!matches!(input, Input::Keep(_))).then(|| input.clone());
    let mut input = input;
    for _ in 0..ROUNDS_MAX {
        let decided = {
            let mut moment = Moment {
                now: parts.clock.now(),
                ids: &mut || first_id.take().unwrap_or_else(|| parts.ids.event()),
                entropy: entropy.clone(),
                env: parts.env.clone(),
                loaded: loaded.clone(),
                caps: parts.caps,
            };
            decide(&cached.playbook, &mut cached.state, input, &mut moment)
        };
        match (decided, &spare) {
            (Err(Refusal::Need(places)), Some(again)) => {
                load(parts, cached.state.id(), places, uncommitted, &mut loaded).await?;
                input = again.clone();
                // What the undone try drew of it is drawn again.
                first_id = given_id;
            }
            (decided, _) => return decided.map_err(SubmitError::Refused),
        }
    }
    Err(SubmitError::Busy)
}

/// The same for an input that touches no value, such as a claim.
pub(super) fn decide_plain(
    parts: &WriterParts,
    cached: &mut Cached,
    input: Input,
) -> Result<Vec<Event>, Refusal> {
    let mut moment = Moment {
        now: parts.clock.now(),
        ids: &mut || parts.ids.event(),
        entropy: Entropy::new(ids::entropy()),
        env: parts.env.clone(),
        loaded: Loaded::new(),
        caps: parts.caps,
    };
    decide(&cached.playbook, &mut cached.state, input, &mut moment)
}

/// Reads what these places hold: from events about to be committed, or from the store.
async fn load(
    parts: &WriterParts,
    execution: ExecutionId,
    places: Vec<Place>,
    uncommitted: Uncommitted<'_>,
    loaded: &mut Loaded,
) -> Result<(), SubmitError> {
    for place in places {
        if loaded.has(&place) {
            continue;
        }
        match &place {
            Place::Event { seq, .. } => {
                let here = uncommitted.iter().flat_map(|events| events.iter());
                let event = match here.into_iter().find(|event| event.seq == *seq) {
                    Some(event) => Some(event.clone()),
                    None => read(parts, execution, *seq).await?,
                };
                match event {
                    Some(event) => loaded.insert(&event),
                    None => loaded.insert_lost(place, "it is not in the log"),
                }
            }
            Place::Blob(reference) => match parts.results.read(reference).await {
                Ok(bytes) => loaded.insert_blob(reference, &bytes),
                Err(error) if error.is_passing() => return Err(error.into()),
                Err(error) => loaded.insert_lost(place, &error.to_string()),
            },
        }
    }
    Ok(())
}

async fn read(
    parts: &WriterParts,
    execution: ExecutionId,
    seq: Seq,
) -> Result<Option<Arc<Event>>, SubmitError> {
    let failed = |error: StoreError| SubmitError::Store(Arc::new(error));
    let before = Seq(seq.0.saturating_sub(1));
    let events = parts.store.read(execution, before, 1).await.map_err(failed)?;
    Ok(events.into_iter().find(|event| event.seq == seq).map(Arc::new))
}

/// Whether an event is worth remembering while its commit is under way: a later decision may need
/// a value of it.
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
