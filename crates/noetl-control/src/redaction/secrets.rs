//! Secrets by value, and finding them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, MatchKind};
use noetl_model::{Failure, Map, Value};
use tracing::error;
use zeroize::Zeroizing;

use super::fields::{LENGTH_MIN, secret_fields};
use super::forms::{forms, telling_lines};
use super::marks::mark;

/// How many values of one field are remembered: what was handed out before a change may still come
/// back, and a token is another one every hour.
const VALUES_MAX: usize = 8;

/// Values that are known to be secret, each with its mark.
#[derive(Clone, Default)]
pub struct Secrets {
    /// By alias and field, the newest value last.
    fields: BTreeMap<(String, String), VecDeque<Zeroizing<String>>>,
    finder: OnceLock<Option<Finder>>,
}

/// Shows how many there are, never what they are.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} fields)", self.fields.len())
    }
}

#[derive(Clone)]
struct Finder {
    automaton: AhoCorasick,
    /// The mark of each pattern.
    marks: Vec<String>,
    /// Whether a number alone could be a secret.
    has_numbers: bool,
}

impl Secrets {
    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Notes the secret fields of what an alias holds.
    pub fn note(&mut self, alias: &str, data: &Value) {
        for (field, value) in looked_for(data) {
            let values = self.fields.entry((alias.to_owned(), field)).or_default();
            if values.iter().any(|known| **known == value) {
                continue;
            }
            values.push_back(Zeroizing::new(value));
            if values.len() > VALUES_MAX {
                values.pop_front();
            }
            self.finder = OnceLock::new();
        }
    }

    /// Whether all of them are known already.
    pub(super) fn has(&self, alias: &str, data: &Value) -> bool {
        looked_for(data).all(|(field, value)| {
            let values = self.fields.get(&(alias.to_owned(), field));
            values.is_some_and(|values| values.iter().any(|known| **known == value))
        })
    }

    /// The mark of the first secret in a value.
    pub fn find(&self, value: &Value) -> Option<&str> {
        self.finder()?.find(value)
    }

    /// Puts marks in the place of secrets.
    pub fn redact(&self, value: &mut Value) {
        if let Some(finder) = self.finder() {
            finder.redact(value);
        }
    }

    /// The same in named values.
    pub fn redact_map(&self, map: &mut Map) {
        if let Some(finder) = self.finder() {
            finder.redact_map(map);
        }
    }

    /// The same in a failure.
    pub fn redact_failure(&self, failure: &mut Failure) {
        let Some(finder) = self.finder() else { return };
        finder.redact_text(&mut failure.message);
        if let Some(details) = &mut failure.details {
            finder.redact(details);
        }
    }

    fn finder(&self) -> Option<&Finder> {
        self.finder.get_or_init(|| self.made()).as_ref()
    }

    fn made(&self) -> Option<Finder> {
        let mut patterns: BTreeMap<String, String> = BTreeMap::new();
        let mut has_numbers = false;
        for ((alias, field), values) in &self.fields {
            for value in values {
                has_numbers |= value.parse::<f64>().is_ok();
                for form in forms(value).into_iter().chain(telling_lines(value)) {
                    patterns.entry(form).or_insert_with(|| mark(alias, field));
                }
            }
        }
        if patterns.is_empty() {
            return None;
        }
        let (patterns, marks): (Vec<_>, Vec<_>) = patterns.into_iter().unzip();
        // The longest: a secret may begin with another one.
        let built = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns);
        match built {
            Ok(automaton) => Some(Finder { automaton, marks, has_numbers }),
            // Only past billions of bytes of secrets.
            Err(error) => {
                error!(%error, "secrets cannot be looked for");
                None
            }
        }
    }
}

fn looked_for(data: &Value) -> impl Iterator<Item = (String, String)> {
    secret_fields(data).into_iter().filter(|(_, value)| value.len() >= LENGTH_MIN)
}

impl Finder {
    fn find(&self, value: &Value) -> Option<&str> {
        match value {
            Value::String(text) => self.find_in(text),
            Value::Array(items) => items.iter().find_map(|item| self.find(item)),
            Value::Object(map) => {
                let in_keys = map.keys().find_map(|key| self.find_in(key));
                in_keys.or_else(|| map.values().find_map(|value| self.find(value)))
            }
            Value::Number(number) if self.has_numbers => self.whole(&number.to_string()),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }

    fn find_in(&self, text: &str) -> Option<&str> {
        let found = self.automaton.find(text)?;
        Some(&self.marks[found.pattern()])
    }

    /// The mark of a text that is a secret from its beginning to its end.
    fn whole(&self, text: &str) -> Option<&str> {
        let found = self.automaton.find(text).filter(|found| found.range() == (0..text.len()))?;
        Some(&self.marks[found.pattern()])
    }

    fn redact(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.redact_text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact(item)),
            Value::Object(map) => self.redact_map(map),
            Value::Number(number) if self.has_numbers => {
                if let Some(mark) = self.whole(&number.to_string()) {
                    *value = Value::from(mark);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn redact_map(&self, map: &mut Map) {
        map.values_mut().for_each(|value| self.redact(value));
        if map.keys().any(|key| self.automaton.is_match(key)) {
            let redacted = |mut key: String| {
                self.redact_text(&mut key);
                key
            };
            *map = std::mem::take(map)
                .into_iter()
                .map(|(key, value)| (redacted(key), value))
                .collect();
        }
    }

    fn redact_text(&self, text: &mut String) {
        if self.automaton.is_match(text.as_str()) {
            *text = self.automaton.replace_all(text, &self.marks);
        }
    }
}
