//! Items of a loop: conversion of the rendered value to a list, and chunks of a bounded size.

use noetl_model::{Map, Value};
use noetl_playbook::document::{FailureMode, LoopMode, LoopSpec};
use noetl_template::{Data, exact_json};

use crate::values::size_of;

/// Maximum number of items in one chunk. Issuing one item reads the whole chunk.
pub(super) const CHUNK_ITEMS_MAX: usize = 256;

/// Approximate maximum size of a chunk in bytes. A single item may be larger.
pub(super) const CHUNK_BYTES_MAX: usize = 32 * 1024;

/// Returns the items of a rendered value: the elements of a list, the entries of a map, the
/// integers below a number, the list that a text encodes as JSON or else the text itself, and none
/// for null.
///
/// # Errors
///
/// Returns a message if the value is a Boolean, or a number that is negative, fractional, or above
/// [`u32::MAX`].
pub(super) fn items(value: Value) -> Result<Vec<Value>, String> {
    match value {
        Value::Array(items) => Ok(items),
        // A map that wraps a list, such as a query result, stands for that list.
        Value::Object(map) => match listed(map) {
            Ok(items) => Ok(items),
            Err(map) => Ok(map.into_iter().map(entry).collect()),
        },
        Value::Number(number) => {
            let count = number.as_u64().filter(|count| *count <= u64::from(u32::MAX));
            let refused = || format!("a loop cannot go through the number {number}");
            Ok((0..count.ok_or_else(refused)?).map(Value::from).collect())
        }
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Array(items)) => Ok(items),
            _ => Ok(vec![Value::String(text)]),
        },
        Value::Null => Ok(Vec::new()),
        Value::Bool(answer) => Err(format!("a loop cannot go through {answer}; give it a list")),
    }
}

/// Returns the list within the result of a loop or a SQL statement, or the map itself if it is
/// neither.
fn listed(mut map: Map) -> Result<Vec<Value>, Map> {
    let has = |key: &str| map.contains_key(key);
    let key = if has("results") && has("stats") && has("errors") {
        "results"
    } else if has("rows") && has("columns") && has("row_count") {
        "rows"
    } else {
        return Err(map);
    };
    match map.remove(key) {
        Some(Value::Array(items)) => Ok(items),
        other => {
            map.extend(other.map(|value| (key.to_owned(), value)));
            Err(map)
        }
    }
}

fn entry((key, value): (String, Value)) -> Value {
    let entry = [("key".to_owned(), Value::String(key)), ("value".to_owned(), value)];
    Value::Object(Map::from_iter(entry))
}

/// Splits a collection into chunks, each with the index of its first item.
pub(super) fn chunks(items: Vec<Value>) -> Vec<(u32, Vec<Value>)> {
    let mut chunks: Vec<(u32, Vec<Value>)> = Vec::new();
    let mut bytes = 0;
    for (place, item) in items.into_iter().enumerate() {
        let size = size_of(&item);
        let is_full =
            |chunk: &Vec<Value>| chunk.len() >= CHUNK_ITEMS_MAX || bytes + size > CHUNK_BYTES_MAX;
        match chunks.last_mut().filter(|(_, chunk)| !is_full(chunk)) {
            Some((_, chunk)) => {
                chunk.push(item);
                bytes += size;
            }
            None => {
                let from = u32::try_from(place).unwrap_or(u32::MAX);
                chunks.push((from, vec![item]));
                bytes = size;
            }
        }
    }
    chunks
}

/// Returns the rows in the result of a claim, or `None` if the result is not a list of rows.
pub(super) fn rows(answer: &Data) -> Option<Vec<Value>> {
    match exact_json(answer) {
        Value::Array(rows) => Some(rows),
        Value::Object(mut map) => match map.remove("rows") {
            Some(Value::Array(rows)) => Some(rows),
            // A statement that returns no rows claimed none.
            None if map.contains_key("affected_rows") => Some(Vec::new()),
            _ => None,
        },
        Value::Null => Some(Vec::new()),
        _ => None,
    }
}

/// Returns the loop settings of a command that runs a whole loop on one worker.
pub(super) fn local(repeat: &LoopSpec, items: &[Value], max_in_flight: u32) -> Value {
    serde_json::json!({
        "items": items,
        "iterator": repeat.iterator,
        "mode": match repeat.mode {
            LoopMode::Sequential => "sequential",
            LoopMode::Parallel => "parallel",
        },
        "max_in_flight": max_in_flight,
        "failure": match repeat.failure {
            FailureMode::FailFast => "fail_fast",
            FailureMode::BestEffort => "best_effort",
        },
    })
}
