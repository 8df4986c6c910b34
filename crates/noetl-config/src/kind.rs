//! Types of values, and how text and TOML become values.

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use toml::de::{DeArray, DeValue};

use crate::secret::Secret;

/// Type of a setting's value, which decides how its text is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text. Its reader may require a syntax.
    Text,
    /// Integer from `min` to `max`, both allowed.
    Number { min: i64, max: i64 },
    /// Whole seconds in a range.
    Seconds { min: i64, max: i64 },
    /// Whole milliseconds in a range.
    Millis { min: i64, max: i64 },
    /// Boolean: true, 1, yes, on; false, 0, no, off.
    Switch,
    /// Boolean of OpenTelemetry: every text except `true` is false.
    OtelSwitch,
    /// Word of this list, in any case.
    Choice(&'static [&'static str]),
    /// List of texts; comma-separated outside the file.
    List,
    /// Path of a file or directory; need not be UTF-8.
    Path,
    /// IP address without a port.
    Ip,
    /// IP address with a port.
    Socket,
}

/// Value as a layer gives it, before it is parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawValue {
    /// Text of a variable, a flag, or a scalar in the file.
    Text(OsString),
    /// Elements of an array in the file, or of a repeated flag.
    List(Vec<String>),
}

/// Value of a setting's type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedValue {
    Text(String),
    Number(i64),
    Duration(Duration),
    Switch(bool),
    List(Vec<String>),
    Path(OsString),
    Ip(IpAddr),
    Socket(SocketAddr),
}

impl Kind {
    /// Returns the type as a sentence's object, such as `a number from 1 to 5`.
    pub fn expected(self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Number { min, max } | Self::Seconds { min, max } | Self::Millis { min, max } => {
                format!("a number from {min} to {max}")
            }
            Self::Switch | Self::OtelSwitch => "true or false".to_owned(),
            Self::Choice(words) => match words {
                [] => "nothing".to_owned(),
                [word] => (*word).to_owned(),
                [first @ .., last] => format!("{} or {last}", first.join(", ")),
            },
            Self::List => "a list of texts".to_owned(),
            Self::Path => "a path".to_owned(),
            Self::Ip => "an IP address".to_owned(),
            Self::Socket => "an address with a port".to_owned(),
        }
    }

    /// Parses a value. Returns `None` if it is blank and its type is not text, a list, or a path:
    /// then it counts as unset.
    ///
    /// # Errors
    ///
    /// Returns `Err` if the value is not of this type.
    #[expect(
        clippy::result_unit_err,
        reason = "`expected` has the message, and the caller the name"
    )]
    pub fn parse(self, given: &RawValue) -> Result<Option<ParsedValue>, ()> {
        let text = match (self, given) {
            (Self::Path, RawValue::Text(text)) => return Ok(Some(ParsedValue::Path(text.clone()))),
            (Self::List, RawValue::List(items)) => {
                return Ok(Some(ParsedValue::List(items.clone())));
            }
            (_, RawValue::List(_)) => return Err(()),
            (_, RawValue::Text(text)) => text.to_str().ok_or(())?,
        };
        if text.trim().is_empty() && !matches!(self, Self::Text | Self::List) {
            return Ok(None);
        }
        let value = match self {
            Self::Text | Self::Path => ParsedValue::Text(text.to_owned()),
            Self::Number { min, max } => ParsedValue::Number(number(text, min, max)?),
            Self::Seconds { min, max } => {
                let seconds = number(text, min, max)?;
                ParsedValue::Duration(Duration::from_secs(u64::try_from(seconds).map_err(|_| ())?))
            }
            Self::Millis { min, max } => {
                let millis = number(text, min, max)?;
                ParsedValue::Duration(Duration::from_millis(u64::try_from(millis).map_err(|_| ())?))
            }
            Self::Switch => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => ParsedValue::Switch(true),
                "false" | "0" | "no" | "off" => ParsedValue::Switch(false),
                _ => return Err(()),
            },
            Self::OtelSwitch => ParsedValue::Switch(text.trim().eq_ignore_ascii_case("true")),
            Self::Choice(words) => match text.trim().to_ascii_lowercase().as_str() {
                text if words.contains(&text) => ParsedValue::Text(text.to_owned()),
                _ => return Err(()),
            },
            Self::List => ParsedValue::List(items(text)),
            Self::Ip => ParsedValue::Ip(text.trim().parse().map_err(|_| ())?),
            Self::Socket => ParsedValue::Socket(text.trim().parse().map_err(|_| ())?),
        };
        Ok(Some(value))
    }

    /// Converts a TOML value of the right TOML type. Its text is parsed later, like that of a
    /// variable.
    pub(crate) fn raw_value(self, value: &DeValue<'_>) -> Option<RawValue> {
        let text = |text: &str| Some(RawValue::Text(text.into()));
        match (self, value) {
            (Self::Number { .. } | Self::Seconds { .. } | Self::Millis { .. }, found) => {
                let found = found.as_integer()?;
                let number = i64::from_str_radix(found.as_str(), found.radix()).ok()?;
                text(&number.to_string())
            }
            (Self::Switch | Self::OtelSwitch, DeValue::Boolean(on)) => text(&on.to_string()),
            (Self::List, DeValue::Array(array)) => strings(array).map(RawValue::List),
            (
                Self::Text | Self::Choice(_) | Self::List | Self::Path | Self::Ip | Self::Socket,
                DeValue::String(found),
            ) => text(found),
            _ => None,
        }
    }
}

impl RawValue {
    /// Returns `true` for an empty text, which counts as unset.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }

    /// Returns the elements of a list.
    pub(crate) fn items(&self) -> Vec<String> {
        match self {
            Self::List(list) => list.clone(),
            Self::Text(text) => text.to_str().map(items).unwrap_or_default(),
        }
    }
}

impl From<&OsStr> for RawValue {
    fn from(text: &OsStr) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&str> for RawValue {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

fn number(text: &str, min: i64, max: i64) -> Result<i64, ()> {
    text.trim().parse().ok().filter(|number| (min..=max).contains(number)).ok_or(())
}

fn items(text: &str) -> Vec<String> {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(str::to_owned).collect()
}

fn strings(array: &DeArray<'_>) -> Option<Vec<String>> {
    array.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
}

/// Describes a TOML value for messages, with its text unless that is a secret.
pub(crate) fn found(value: &DeValue<'_>, is_secret: bool) -> String {
    match value {
        DeValue::String(_) if is_secret => "a string".to_owned(),
        DeValue::String(text) => format!("the string '{text}'"),
        DeValue::Integer(_) if is_secret => "an integer".to_owned(),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => format!("the integer {number}"),
            Err(_) => "an integer of more than 64 bits".to_owned(),
        },
        DeValue::Float(_) => "a floating-point number".to_owned(),
        DeValue::Boolean(on) => format!("the Boolean {on}"),
        DeValue::Datetime(_) => "a date or time".to_owned(),
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// Conversion of a parsed value to the type of a field.
pub(crate) trait FromValue: Sized {
    /// Returns the field, or `None` if the declared type of the setting doesn't fit the field.
    fn from_value(value: Option<ParsedValue>) -> Option<Self>;
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Option<ParsedValue>) -> Option<Self> {
        match value {
            None => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

macro_rules! from_value {
    ($($type:ty: $pattern:pat => $field:expr;)+) => { $(
        impl FromValue for $type {
            fn from_value(value: Option<ParsedValue>) -> Option<Self> {
                match value? {
                    $pattern => $field,
                    _ => None,
                }
            }
        }
    )+ };
}

from_value! {
    String: ParsedValue::Text(text) => Some(text);
    Secret: ParsedValue::Text(text) => Some(text.into());
    std::path::PathBuf: ParsedValue::Path(path) => Some(path.into());
    bool: ParsedValue::Switch(on) => Some(on);
    Duration: ParsedValue::Duration(duration) => Some(duration);
    Vec<String>: ParsedValue::List(items) => Some(items);
    IpAddr: ParsedValue::Ip(ip) => Some(ip);
    SocketAddr: ParsedValue::Socket(address) => Some(address);
    u16: ParsedValue::Number(number) => number.try_into().ok();
    u32: ParsedValue::Number(number) => number.try_into().ok();
    u64: ParsedValue::Number(number) => number.try_into().ok();
    usize: ParsedValue::Number(number) => number.try_into().ok();
    i64: ParsedValue::Number(number) => Some(number);
}
