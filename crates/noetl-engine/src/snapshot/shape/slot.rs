//! A slot in a snapshot.

use std::sync::Arc;

use noetl_model::event::BlobRef;
use noetl_model::{Seq, Value};
use noetl_template::{
    DeferredValue, ValueList, ValuePatch, ValueSlot, ValueSource, exact_json, from_json_owned,
};
use serde::{Deserialize, Serialize};

use super::super::SnapshotError;
use crate::values::{StoredValue, size_of, size_of_slot};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SlotShape {
    Held(Value),
    Event {
        seq: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Arc<str>>,
        bytes: u64,
    },
    Blob {
        reference: Arc<BlobRef>,
        fields: Value,
    },
    /// Values written over one another, each at a path.
    Parts(Vec<(Vec<Arc<str>>, SlotShape)>),
    /// Values gathered into a list.
    List(Vec<SlotShape>),
}

impl SlotShape {
    pub(super) fn from_slot(slot: &ValueSlot) -> Self {
        match slot {
            ValueSlot::Held(data) => Self::Held(exact_json(data)),
            ValueSlot::Away(away) => match away.parts.as_slice() {
                [ValuePatch { path, source }] if path.is_empty() => Self::of_source(source),
                parts => {
                    let part =
                        |part: &ValuePatch| (part.path.clone(), Self::of_source(&part.source));
                    Self::Parts(parts.iter().map(part).collect())
                }
            },
        }
    }

    fn of_source(source: &ValueSource) -> Self {
        match source {
            ValueSource::Held(data) => Self::Held(exact_json(data)),
            ValueSource::Event { seq, key, bytes } => {
                Self::Event { seq: seq.0, key: key.clone(), bytes: *bytes }
            }
            ValueSource::Blob { reference, fields } => {
                Self::Blob { reference: reference.clone(), fields: exact_json(fields) }
            }
            ValueSource::List(gathered) => {
                Self::List(gathered.items().iter().map(Self::from_slot).collect())
            }
        }
    }

    pub(super) fn into_stored(self) -> Result<StoredValue, SnapshotError> {
        let slot = match self {
            Self::Held(value) => {
                let bytes = size_of(&value);
                return Ok(StoredValue { slot: ValueSlot::Held(from_json_owned(value)), bytes });
            }
            Self::Parts(parts) => {
                let part = |(path, kind): (Vec<Arc<str>>, Self)| {
                    kind.source().map(|source| ValuePatch { path, source })
                };
                let parts: Vec<ValuePatch> =
                    parts.into_iter().map(part).collect::<Result<_, _>>()?;
                if parts.is_empty() {
                    return Err(SnapshotError::Impossible("a value of no parts".into()));
                }
                ValueSlot::Away(Arc::new(DeferredValue { parts }))
            }
            one => ValueSlot::away(one.source()?),
        };
        let bytes = size_of_slot(&slot);
        Ok(StoredValue { slot, bytes })
    }

    fn source(self) -> Result<ValueSource, SnapshotError> {
        match self {
            Self::Held(value) => Ok(ValueSource::Held(from_json_owned(value))),
            Self::Event { seq, key, bytes } => Ok(ValueSource::Event { seq: Seq(seq), key, bytes }),
            Self::Blob { reference, fields } => {
                Ok(ValueSource::Blob { reference, fields: from_json_owned(fields) })
            }
            Self::List(items) => {
                let items =
                    items.into_iter().map(|item| item.into_stored().map(|stored| stored.slot));
                let items = items.collect::<Result<Vec<ValueSlot>, _>>()?;
                Ok(ValueSource::List(Arc::new(ValueList::new(items))))
            }
            Self::Parts(_) => Err(SnapshotError::Impossible("parts within a part".into())),
        }
    }
}
