//! A slot in a snapshot.

use std::sync::Arc;

use noetl_model::event::BlobRef;
use noetl_model::{Seq, Value};
use noetl_playbook::template::{Away, Gathered, Part, Slot, Source, exact_json, from_json_owned};
use serde::{Deserialize, Serialize};

use super::super::SnapshotError;
use crate::values::{Kept, size_of, size_of_slot};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
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
    Parts(Vec<(Vec<Arc<str>>, Kind)>),
    /// Values gathered into a list.
    List(Vec<Kind>),
}

impl Kind {
    pub(super) fn of(slot: &Slot) -> Self {
        match slot {
            Slot::Held(data) => Self::Held(exact_json(data)),
            Slot::Away(away) => match away.parts.as_slice() {
                [Part { path, source }] if path.is_empty() => Self::of_source(source),
                parts => {
                    let part = |part: &Part| (part.path.clone(), Self::of_source(&part.source));
                    Self::Parts(parts.iter().map(part).collect())
                }
            },
        }
    }

    fn of_source(source: &Source) -> Self {
        match source {
            Source::Held(data) => Self::Held(exact_json(data)),
            Source::Event { seq, key, bytes } => {
                Self::Event { seq: seq.0, key: key.clone(), bytes: *bytes }
            }
            Source::Blob { reference, fields } => {
                Self::Blob { reference: reference.clone(), fields: exact_json(fields) }
            }
            Source::List(gathered) => Self::List(gathered.items().iter().map(Self::of).collect()),
        }
    }

    pub(super) fn kept(self) -> Result<Kept, SnapshotError> {
        let slot = match self {
            Self::Held(value) => {
                let bytes = size_of(&value);
                return Ok(Kept { slot: Slot::Held(from_json_owned(value)), bytes });
            }
            Self::Parts(parts) => {
                let part = |(path, kind): (Vec<Arc<str>>, Self)| {
                    kind.source().map(|source| Part { path, source })
                };
                let parts: Vec<Part> = parts.into_iter().map(part).collect::<Result<_, _>>()?;
                if parts.is_empty() {
                    return Err(SnapshotError::Impossible("a value of no parts".into()));
                }
                Slot::Away(Arc::new(Away { parts }))
            }
            one => Slot::away(one.source()?),
        };
        let bytes = size_of_slot(&slot);
        Ok(Kept { slot, bytes })
    }

    fn source(self) -> Result<Source, SnapshotError> {
        match self {
            Self::Held(value) => Ok(Source::Held(from_json_owned(value))),
            Self::Event { seq, key, bytes } => Ok(Source::Event { seq: Seq(seq), key, bytes }),
            Self::Blob { reference, fields } => {
                Ok(Source::Blob { reference, fields: from_json_owned(fields) })
            }
            Self::List(items) => {
                let items = items.into_iter().map(|item| item.kept().map(|kept| kept.slot));
                let items = items.collect::<Result<Vec<Slot>, _>>()?;
                Ok(Source::List(Arc::new(Gathered::new(items))))
            }
            Self::Parts(_) => Err(SnapshotError::Impossible("parts within a part".into())),
        }
    }
}
