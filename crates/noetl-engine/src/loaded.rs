//! Values that the caller loaded for a decision.

use std::collections::HashMap;
use std::sync::Arc;

use noetl_model::event::{BlobRef, LoopEvent};
use noetl_model::{Event, Fact, Failure, Seq, StepOutcome, Value};
use noetl_template::{Data, LoadedValues, ValueRef, from_json, from_json_owned};

use crate::values::failed_result;

/// Values by reference, for one decision of one execution. Cloning copies no value.
#[derive(Debug, Clone, Default)]
pub struct DecisionValues {
    values: Arc<LoadedValues>,
    failures: HashMap<Seq, Failure>,
}

impl DecisionValues {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event of the execution's event log, whether or not it is committed.
    pub fn insert(&mut self, event: &Event) {
        let named =
            |(name, value): (&String, &Value)| (Some(Arc::from(name.as_str())), from_json(value));
        let values: Vec<(Option<Arc<str>>, Data)> = match &event.fact {
            Fact::PlaybookStarted(started) => started.workload.iter().map(named).collect(),
            Fact::ContextUpdated { values, locals, .. } => {
                let local = |(path, value): (&String, &Value)| {
                    (Some(Arc::from(local_key(path))), from_json(value))
                };
                values.iter().map(named).chain(locals.iter().map(local)).collect()
            }
            Fact::CallDone { data, .. } => vec![(None, from_json(data))],
            Fact::Loop(fact) => match &fact.what {
                LoopEvent::Items(items) => {
                    vec![(None, from_json_owned(Value::Array(items.items.clone())))]
                }
                _ => Vec::new(),
            },
            Fact::StepExited { outcome: StepOutcome::Failed { failure, .. }, .. } => {
                self.failures.insert(event.seq, failure.clone());
                vec![(None, failed_result(failure))]
            }
            // No reference leads to any other event. Mark it as loaded, so that it is not requested
            // again.
            _ => Vec::new(),
        };
        Arc::make_mut(&mut self.values).insert_event(event.seq, values);
    }

    /// Adds a blob's bytes. If they do not match the reference's media type, the value counts as
    /// lost.
    pub fn insert_blob(&mut self, reference: &Arc<BlobRef>, bytes: &[u8]) {
        match read(reference, bytes) {
            Ok(data) => {
                let digest = reference.digest.clone();
                Arc::make_mut(&mut self.values).insert_blob(digest, data);
            }
            Err(why) => self.insert_unreadable(ValueRef::Blob(reference.clone()), &why),
        }
    }

    /// Marks a value as permanently unreadable. A step that reads it fails with `why`. Without this
    /// mark, a decision that needs the value would request it forever.
    pub fn insert_unreadable(&mut self, place: ValueRef, why: &str) {
        let what = match &place {
            ValueRef::Event { seq, .. } => format!("the value in event {seq}"),
            ValueRef::Blob(reference) => format!("the value in blob {}", reference.digest),
        };
        let why = format!("{what} cannot be read: {why}");
        Arc::make_mut(&mut self.values).insert_lost(place, why);
    }

    /// Returns `true` if the value was added or marked as lost.
    pub fn has(&self, place: &ValueRef) -> bool {
        self.values.has(place)
    }

    pub(crate) fn values(&self) -> Arc<LoadedValues> {
        self.values.clone()
    }

    pub(crate) fn failure(&self, seq: Seq) -> Option<&Failure> {
        self.failures.get(&seq)
    }
}

/// Returns the key of a variable below `step` in the event that set it. The leading dot
/// distinguishes it from paths below `ctx`, which never start with one.
pub(crate) fn local_key(path: &str) -> String {
    format!(".{path}")
}

fn read(reference: &BlobRef, bytes: &[u8]) -> Result<Data, String> {
    let kind = reference.media_type.split(';').next().unwrap_or_default().trim();
    if kind == "application/json" || kind.ends_with("+json") {
        let value = serde_json::from_slice(bytes);
        return value.map(from_json_owned).map_err(|error| format!("it is not JSON: {error}"));
    }
    if kind.starts_with("text/") {
        let text = std::str::from_utf8(bytes);
        return text.map(Data::from).map_err(|error| format!("it is not text: {error}"));
    }
    Err(format!("templates cannot read the type {kind}"))
}
