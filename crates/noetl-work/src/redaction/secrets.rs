//! Known secret values, and the search for them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, MatchKind};
use noetl_model::placeholder::shown;
use noetl_model::{Failure, Map, Value};
use tracing::error;
use zeroize::Zeroizing;

use super::fields::{LENGTH_MIN, SecretField, secret_fields};
use super::forms::{forms, lines, parts};

/// Maximum number of values remembered per field: a value used before a change may still appear,
/// and a token changes every hour.
const VALUES_MAX: usize = 8;

/// Function that returns a resolvable placeholder for an alias and field, if one may be created.
pub type Mint<'a> = Option<&'a dyn Fn(&str, &str) -> Option<String>>;

/// Known secret values, each with its placeholder.
#[derive(Clone, Default)]
pub struct SecretTable {
    /// Values by alias and field, the latest last.
    fields: BTreeMap<(String, String), VecDeque<Zeroizing<String>>>,
    finder: OnceLock<Option<Finder>>,
}

/// Shows the number of fields, never their values.
impl fmt::Debug for SecretTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} fields)", self.fields.len())
    }
}

#[derive(Clone)]
struct Finder {
    automaton: AhoCorasick,
    targets: Vec<Replacement>,
    /// Lines of multi-line secrets that match only a whole line.
    lines: HashMap<String, Replacement>,
    /// Whether any secret is a number.
    has_numbers: bool,
}

#[derive(Clone)]
struct Replacement {
    shown: String,
    /// Fields whose whole latest value the text is. Only their placeholders may resolve: a
    /// placeholder for a part, an encoding, or an earlier value would stand for more than was
    /// replaced.
    values: Vec<(String, String)>,
}

impl Replacement {
    fn new(alias: &str, field: &str) -> Self {
        Self { shown: shown(alias, field), values: Vec::new() }
    }

    fn text(&self, mint: Mint<'_>) -> String {
        let minted =
            mint.and_then(|mint| self.values.iter().find_map(|(alias, field)| mint(alias, field)));
        minted.unwrap_or_else(|| self.shown.clone())
    }
}

impl SecretTable {
    /// Returns `true` if no secret is known.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Adds the secret fields of a credential.
    pub fn note(&mut self, alias: &str, kind: Option<&str>, data: &Value) {
        for (field, value) in looked_for(kind, data) {
            let values = self.fields.entry((alias.to_owned(), field)).or_default();
            if values.back().is_some_and(|newest| **newest == value) {
                continue;
            }
            // A value that was restored becomes the latest one.
            values.retain(|known| **known != value);
            values.push_back(Zeroizing::new(value));
            if values.len() > VALUES_MAX {
                values.pop_front();
            }
            self.finder = OnceLock::new();
        }
    }

    /// Returns `true` if each value is the latest of its field.
    pub(super) fn is_newest(&self, alias: &str, kind: Option<&str>, data: &Value) -> bool {
        looked_for(kind, data).all(|(field, value)| {
            let values = self.fields.get(&(alias.to_owned(), field));
            values.and_then(VecDeque::back).is_some_and(|newest| **newest == value)
        })
    }

    /// Returns the placeholder of the first secret in a value.
    pub fn find(&self, value: &Value) -> Option<&str> {
        self.finder()?.find(value)
    }

    /// Replaces secrets in a value.
    pub fn redact(&self, value: &mut Value, mint: Mint<'_>) {
        if let Some(finder) = self.finder() {
            finder.redact(value, mint);
        }
    }

    /// Replaces secrets in a map.
    pub fn redact_map(&self, map: &mut Map, mint: Mint<'_>) {
        if let Some(finder) = self.finder() {
            finder.redact_map(map, mint);
        }
    }

    /// Replaces secrets in a failure.
    pub fn redact_failure(&self, failure: &mut Failure, mint: Mint<'_>) {
        let Some(finder) = self.finder() else { return };
        finder.redact_text(&mut failure.message, mint);
        if let Some(details) = &mut failure.details {
            finder.redact(details, mint);
        }
    }

    fn finder(&self) -> Option<&Finder> {
        self.finder.get_or_init(|| self.made()).as_ref()
    }

    fn made(&self) -> Option<Finder> {
        let mut patterns: BTreeMap<String, Replacement> = BTreeMap::new();
        let mut whole_lines: HashMap<String, Replacement> = HashMap::new();
        let mut has_numbers = false;
        for ((alias, field), values) in &self.fields {
            for (place, value) in values.iter().enumerate() {
                has_numbers |= value.parse::<f64>().is_ok();
                let new = || Replacement::new(alias, field);
                let target = patterns.entry(value.to_string()).or_insert_with(new);
                if place + 1 == values.len() {
                    target.values.push((alias.clone(), field.clone()));
                }
            }
        }
        for ((alias, field), values) in &self.fields {
            let new = || Replacement::new(alias, field);
            for value in values {
                let found = lines(value);
                let parts: Vec<String> =
                    parts(value).into_iter().filter(|part| part.len() >= LENGTH_MIN).collect();
                let texts = parts.iter().chain(std::iter::once(&**value)).chain(&found.anywhere);
                for form in texts.flat_map(|text| forms(text)) {
                    patterns.entry(form).or_insert_with(new);
                }
                for line in found.whole {
                    whole_lines.entry(line).or_insert_with(new);
                }
            }
        }
        if patterns.is_empty() {
            return None;
        }
        let (patterns, targets): (Vec<_>, Vec<_>) = patterns.into_iter().unzip();
        // Longest match: a secret may start with another one.
        let built = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns);
        match built {
            Ok(automaton) => Some(Finder { automaton, targets, lines: whole_lines, has_numbers }),
            // Possible only with billions of bytes of secrets.
            Err(error) => {
                error!(%error, "failed to build secret search automaton");
                None
            }
        }
    }
}

/// Returns the values to search for.
fn looked_for<'d>(
    kind: Option<&str>,
    data: &'d Value,
) -> impl Iterator<Item = (String, String)> + use<'d> {
    let fields = secret_fields(kind, data).into_iter();
    fields
        .filter(|field| field.value.len() >= LENGTH_MIN)
        .map(|SecretField { field, value }| (field, value))
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
            Value::Number(number) if self.has_numbers => {
                self.whole(&number.to_string()).map(|target| &*target.shown)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }

    fn find_in(&self, text: &str) -> Option<&str> {
        match self.automaton.find(text) {
            Some(found) => Some(&self.targets[found.pattern()].shown),
            None => self.line_in(text).map(|target| &*target.shown),
        }
    }

    /// Returns the target of the first line of a text that is a line of a secret.
    fn line_in(&self, text: &str) -> Option<&Replacement> {
        if self.lines.is_empty() {
            return None;
        }
        text.lines().find_map(|line| self.lines.get(line.trim()))
    }

    /// Returns the target of a text that is a secret as a whole.
    fn whole(&self, text: &str) -> Option<&Replacement> {
        let found = self.automaton.find(text).filter(|found| found.range() == (0..text.len()))?;
        Some(&self.targets[found.pattern()])
    }

    fn redact(&self, value: &mut Value, mint: Mint<'_>) {
        match value {
            Value::String(text) => self.redact_text(text, mint),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact(item, mint)),
            Value::Object(map) => self.redact_map(map, mint),
            Value::Number(number) if self.has_numbers => {
                if let Some(target) = self.whole(&number.to_string()) {
                    *value = Value::from(target.text(mint));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn redact_map(&self, map: &mut Map, mint: Mint<'_>) {
        map.values_mut().for_each(|value| self.redact(value, mint));
        if map.keys().any(|key| self.find_in(key).is_some()) {
            let redacted = |mut key: String| {
                self.redact_text(&mut key, mint);
                key
            };
            *map = std::mem::take(map)
                .into_iter()
                .map(|(key, value)| (redacted(key), value))
                .collect();
        }
    }

    fn redact_text(&self, text: &mut String, mint: Mint<'_>) {
        if self.automaton.is_match(text.as_str()) {
            let mut made = String::with_capacity(text.len());
            self.automaton.replace_all_with(text, &mut made, |found, _, made| {
                made.push_str(&self.targets[found.pattern()].text(mint));
                true
            });
            *text = made;
        }
        if self.line_in(text).is_some() {
            let lines = text.split_inclusive('\n').map(|line| {
                let Some(target) = self.lines.get(line.trim()) else { return line.to_owned() };
                line.replacen(line.trim(), &target.shown, 1)
            });
            *text = lines.collect();
        }
    }
}
