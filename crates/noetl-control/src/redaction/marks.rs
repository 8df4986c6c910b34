//! What stands in the place of a secret.

use noetl_model::{Failure, Map, Value};

const BEGIN: &str = "«secret:";
const END: char = '»';

/// What the beginning of a mark becomes in a text that came with it.
const FOREIGN: &str = "‹secret:";

/// The longest mark that is read; names are far shorter.
const LENGTH_MAX: usize = 1024;

/// The mark of a field. One whose names hold a mark's own signs cannot be turned back.
pub fn mark(alias: &str, field: &str) -> String {
    let plain = |text: &str| text.replace(['«', '»'], "_");
    format!("{BEGIN}{}.{}{END}", plain(alias), plain(field))
}

/// A mark in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Where it is.
    pub range: std::ops::Range<usize>,
    /// Alias and field. Either may hold dots.
    pub name: String,
}

impl Mark {
    /// The ways to part the name into alias and field, the longest alias first.
    pub fn readings(&self) -> impl Iterator<Item = (&str, &str)> {
        let dots: Vec<usize> = self.name.match_indices('.').map(|(at, _)| at).rev().collect();
        dots.into_iter().map(|at| (&self.name[..at], &self.name[at + 1..]))
    }
}

/// The marks of a text, in their order.
pub fn marks_in(text: &str) -> Vec<Mark> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(begin) = text[at..].find(BEGIN).map(|offset| at + offset) {
        let name = begin + BEGIN.len();
        at = name;
        let Some(length) = text[name..].find([END, '«']) else { break };
        let (end, is_whole) = (name + length, text[name + length..].starts_with(END));
        if is_whole && length <= LENGTH_MAX {
            at = end + END.len_utf8();
            found.push(Mark { range: begin..at, name: text[name..end].to_owned() });
        }
    }
    found
}

/// Takes the beginning off every mark in a value that was not marked here.
pub fn unmark(value: &mut Value) {
    match value {
        Value::String(text) => unmark_text(text),
        Value::Array(items) => items.iter_mut().for_each(unmark),
        Value::Object(map) => unmark_map(map),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The same in a failure.
pub fn unmark_failure(failure: &mut Failure) {
    unmark_text(&mut failure.message);
    if let Some(details) = &mut failure.details {
        unmark(details);
    }
}

fn unmark_map(map: &mut Map) {
    map.values_mut().for_each(unmark);
    if map.keys().any(|key| key.contains(BEGIN)) {
        *map = std::mem::take(map)
            .into_iter()
            .map(|(key, value)| (key.replace(BEGIN, FOREIGN), value))
            .collect();
    }
}

fn unmark_text(text: &mut String) {
    if text.contains(BEGIN) {
        *text = text.replace(BEGIN, FOREIGN);
    }
}
