//! Version of a catalog document in JSON.

use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::{ObjectBuilder, OneOfBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Version of a catalog document: a number, decimal text, or `latest`. Empty text means `latest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// The highest version of the path.
    #[default]
    Latest,
    /// The version with this number.
    Number(u32),
}

impl Version {
    /// Returns the version number, or `None` for `latest`.
    pub const fn number(self) -> Option<u32> {
        match self {
            Self::Latest => None,
            Self::Number(number) => Some(number),
        }
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Latest => serializer.serialize_str("latest"),
            Self::Number(number) => serializer.collect_str(number),
        }
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrLatest)
    }
}

struct NumberOrLatest;

impl Visitor<'_> for NumberOrLatest {
    type Value = Version;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a version number or 'latest'")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Version, E> {
        let unexpected = de::Unexpected::Signed(number);
        let number = u32::try_from(number);
        number.map(Version::Number).map_err(|_| E::invalid_value(unexpected, &self))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Version, E> {
        let unexpected = de::Unexpected::Unsigned(number);
        let number = u32::try_from(number);
        number.map(Version::Number).map_err(|_| E::invalid_value(unexpected, &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Version, E> {
        match text.trim() {
            "" | "latest" => Ok(Version::Latest),
            digits => {
                let number = digits.parse().map(Version::Number);
                number.map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
    }
}

impl PartialSchema for Version {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
        let text =
            ObjectBuilder::new().schema_type(Type::String).pattern(Some("^([0-9]+|latest)$"));
        let either = OneOfBuilder::new().item(number).item(text);
        either.description(Some("A version number, or 'latest'")).into()
    }
}

impl ToSchema for Version {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_digits_and_latest_are_versions() {
        let read = |json: &str| serde_json::from_str::<Version>(json).ok();
        assert_eq!(read("3"), Some(Version::Number(3)));
        assert_eq!(read("\"3\""), Some(Version::Number(3)));
        assert_eq!(read("\"latest\""), Some(Version::Latest));
        for json in ["-1", "1.5", "4294967296", "\"newest\"", "null", "{}"] {
            assert_eq!(read(json), None, "{json}");
        }
    }
}
