//! IDs in JSON: numbers in some fields, text in others.

use std::fmt;

use noetl_model::{CatalogId, CommandId, EventId, ExecutionId};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{KnownFormat, SchemaFormat};
use utoipa::openapi::{ObjectBuilder, OneOfBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// JSON representation of an ID in a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdForm {
    /// JSON number, as published workers expect.
    #[default]
    Number,
    /// Decimal text, for browsers, whose numbers are exact only up to 2^53.
    Text,
}

/// A 64-bit ID in JSON. Accepts a number or decimal text as input, and is written in the form it
/// was created with. Equality compares only the numbers.
#[derive(Debug, Clone, Copy, Eq)]
pub struct Id {
    number: i64,
    form: IdForm,
}

impl Id {
    /// Creates an ID that is written in `form`.
    pub const fn new(number: i64, form: IdForm) -> Self {
        Self { number, form }
    }

    /// Creates an ID that is written as a JSON number.
    pub const fn number(number: i64) -> Self {
        Self::new(number, IdForm::Number)
    }

    /// Creates an ID that is written as decimal text.
    pub const fn text(number: i64) -> Self {
        Self::new(number, IdForm::Text)
    }

    /// Returns the numeric value.
    pub const fn get(self) -> i64 {
        self.number
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.number, f)
    }
}

macro_rules! typed {
    ($($typed:ident),+) => {$(
        impl From<Id> for $typed {
            fn from(id: Id) -> Self {
                Self::new(id.number)
            }
        }

        impl From<$typed> for Id {
            /// Creates an ID that is written as a JSON number.
            fn from(id: $typed) -> Self {
                Self::number(id.get())
            }
        }
    )+};
}

typed!(CatalogId, CommandId, EventId, ExecutionId);

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.form {
            IdForm::Number => serializer.serialize_i64(self.number),
            IdForm::Text => serializer.collect_str(&self.number),
        }
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrText)
    }
}

struct NumberOrText;

impl Visitor<'_> for NumberOrText {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a 64-bit id as a number or as decimal text")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Id, E> {
        Ok(Id::number(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Id, E> {
        let unexpected = de::Unexpected::Unsigned(number);
        i64::try_from(number).map(Id::number).map_err(|_| E::invalid_value(unexpected, &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Id, E> {
        let number = text.trim().parse();
        number.map(Id::text).map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

impl PartialSchema for Id {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)));
        let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some(r"^-?[0-9]{1,19}$"));
        let either = OneOfBuilder::new().item(number).item(text);
        either.description(Some("A 64-bit id, as a number or as decimal text")).into()
    }
}

impl ToSchema for Id {}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Id, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_number_and_its_text_are_the_same_id() {
        assert_eq!(read("380436272340037632"), read("\"380436272340037632\""));
        assert_eq!(read("-1"), Ok(Id::number(-1)));
    }

    #[test]
    fn numbers_beyond_64_bits_are_rejected() {
        for json in ["1.5", "9223372036854775808", "1e30", "\"12x\"", "\"\"", "true", "null", "[]"]
        {
            assert!(read(json).is_err(), "{json}");
        }
    }

    #[test]
    fn an_id_is_written_in_the_form_it_was_made_with() {
        assert_eq!(serde_json::to_string(&Id::number(7)).unwrap(), "7");
        assert_eq!(serde_json::to_string(&Id::text(7)).unwrap(), "\"7\"");
    }
}
