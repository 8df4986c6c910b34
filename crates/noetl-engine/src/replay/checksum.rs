//! Checksums of a replay state and of its parts.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::canonical::{put, write_string, write_value};
use super::meta::Value;
use super::state::ReplayState;

/// A SHA-256 digest of canonical JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksum {
    /// Hash algorithm; always `sha256`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Digest in lower-case hexadecimal digits.
    pub value: String,
}

impl Checksum {
    /// Returns the checksum of a value's canonical text.
    pub fn of_value(value: &Value) -> Self {
        let mut hash = Hash::default();
        write_value(&mut hash, value);
        hash.finish()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectionChecksums {
    /// Checksum of the state's `business_objects`.
    pub business_object: Checksum,
    /// Checksum of the state's `commands`.
    pub command: Checksum,
    /// Checksum of the state's `execution`.
    pub execution: Checksum,
    /// Checksum of the state's `frames`.
    pub frame: Checksum,
    /// Checksum of the state's `loops`.
    pub r#loop: Checksum,
    /// Checksum of the state's `stages`.
    pub stage: Checksum,
}

impl ReplayState {
    /// Adds the checksums. Writes the state into the hash part by part, so that its text is never
    /// in memory as a whole.
    pub fn seal(&mut self) {
        let mut whole = Hash::default();
        let mut fields = Fields::new(&mut whole);
        // In order of the field names, as canonical text requires. A missing field is omitted.
        let business_object =
            fields.part("business_objects", &ChecksumPart::Map(&self.business_objects));
        let command = fields.part("commands", &ChecksumPart::Map(&self.commands));
        fields.value("event_count", &self.event_count);
        let execution = fields.part("execution", &ChecksumPart::<()>::Value(json(&self.execution)));
        fields.value("execution_id", &self.execution_id);
        let frame = fields.part("frames", &ChecksumPart::Map(&self.frames));
        fields.optional("last_event_id", self.last_event_id.as_ref());
        fields.optional("last_event_type", self.last_event_type.as_ref());
        let r#loop = fields.part("loops", &ChecksumPart::Map(&self.loops));
        fields.value("organization_id", &self.organization_id);
        fields.value("projection", &self.projection);
        let stages = ChecksumPart::Map(&self.stages);
        let stage = stages.checksum();
        let parts =
            ProjectionChecksums { business_object, command, execution, frame, r#loop, stage };
        fields.value("projection_checksums", &parts);
        fields.optional("replay_snapshot", self.replay_snapshot.as_ref());
        fields.part("stages", &stages);
        fields.value("tenant_id", &self.tenant_id);
        fields.optional("upcaster_registry_digest", self.upcaster_registry_digest.as_ref());
        put(&mut whole, "}");
        self.projection_checksums = Some(parts);
        self.checksum = Some(whole.finish());
    }
}

/// A part of the state that has its own checksum.
enum ChecksumPart<'a, T> {
    Map(&'a BTreeMap<String, T>),
    Value(Value),
}

impl<T: Serialize> ChecksumPart<'_, T> {
    fn write(&self, out: &mut impl Write) {
        match self {
            Self::Value(value) => write_value(out, value),
            Self::Map(entries) => {
                put(out, "{");
                for (place, (key, entry)) in entries.iter().enumerate() {
                    put(out, if place == 0 { "" } else { "," });
                    write_string(out, key);
                    put(out, ":");
                    write_value(out, &json(entry));
                }
                put(out, "}");
            }
        }
    }

    fn checksum(&self) -> Checksum {
        let mut hash = Hash::default();
        self.write(&mut hash);
        hash.finish()
    }
}

/// Writes the fields of an object.
struct Fields<'a> {
    out: &'a mut Hash,
    is_first: bool,
}

impl<'a> Fields<'a> {
    fn new(out: &'a mut Hash) -> Self {
        put(out, "{");
        Self { out, is_first: true }
    }

    fn name(&mut self, name: &str) {
        put(self.out, if self.is_first { "" } else { "," });
        self.is_first = false;
        write_string(self.out, name);
        put(self.out, ":");
    }

    fn value(&mut self, name: &str, value: &impl Serialize) {
        self.name(name);
        write_value(self.out, &json(value));
    }

    fn optional(&mut self, name: &str, value: Option<&impl Serialize>) {
        if let Some(value) = value {
            self.value(name, value);
        }
    }

    /// Writes a part and returns its own checksum.
    fn part<T: Serialize>(&mut self, name: &str, part: &ChecksumPart<'_, T>) -> Checksum {
        self.name(name);
        let mut both = Both { whole: self.out, part: Hash::default() };
        part.write(&mut both);
        both.part.finish()
    }
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("maps with text keys always have a JSON form")
}

/// Number of bytes to buffer before hashing: a piece of JSON is often a single character.
const GATHERED_MAX: usize = 4096;

/// A hash that implements [`Write`].
#[derive(Default)]
struct Hash {
    gathered: String,
    state: Sha256,
}

impl Hash {
    fn finish(mut self) -> Checksum {
        self.state.update(&self.gathered);
        let mut value = String::with_capacity(64);
        for byte in self.state.finalize() {
            let _ = write!(value, "{byte:02x}");
        }
        Checksum { kind: "sha256".to_owned(), value }
    }
}

impl Write for Hash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.gathered.len() + text.len() > GATHERED_MAX {
            self.state.update(&self.gathered);
            self.gathered.clear();
        }
        if text.len() > GATHERED_MAX {
            self.state.update(text);
        } else {
            self.gathered.push_str(text);
        }
        Ok(())
    }
}

/// Writes to two hashes at once.
struct Both<'a> {
    whole: &'a mut Hash,
    part: Hash,
}

impl Write for Both<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.whole.write_str(text)?;
        self.part.write_str(text)
    }
}
