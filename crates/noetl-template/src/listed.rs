//! Maps that also act as lists: a loop's result as its item results, an SQL result as its rows.
//!
//! They act as lists for length, indexing, and iteration, and as maps otherwise. They are
//! recognized by their keys, so that a value is still recognized after it went through the event
//! log, a blob, or a variable.

use minijinja::value::ValueKind;
use serde_json::Value;

use super::data::Data;
use super::data::field;

/// Filters that iterate over a list and do not use a map's keys.
const OF_LISTS: [&str; 23] = [
    "batch",
    "count",
    "first",
    "flatten",
    "groupby",
    "join",
    "last",
    "len",
    "length",
    "list",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "reverse",
    "select",
    "selectattr",
    "slice",
    "sort",
    "sum",
    "unique",
    "zip",
];

/// Returns the list that a map acts as, if any.
pub(super) fn items(data: &Data) -> Option<Data> {
    if data.kind() != ValueKind::Map {
        return None;
    }
    if is_loop(data) {
        return field(data, "results");
    }
    let has_rows = is(data, "columns", ValueKind::Seq) && is(data, "row_count", ValueKind::Number);
    field(data, "rows").filter(|rows| has_rows && rows.kind() == ValueKind::Seq)
}

/// Returns an item by any key: an index of a list or text, from the end if negative, or a map's
/// key.
pub(super) fn item(data: &Data, key: &Data) -> Data {
    let selected = match data.kind() {
        ValueKind::Seq | ValueKind::Iterable | ValueKind::String => {
            let length = data.len().unwrap_or(0);
            place(key, length).and_then(|place| match data.as_str() {
                Some(text) => text.chars().nth(place).map(|c| Data::from(c.to_string())),
                None => data.get_item_by_index(place).ok(),
            })
        }
        _ => {
            let own = data.as_object().and_then(|map| map.get_value(key));
            own.or_else(|| {
                let list = key.is_integer().then(|| items(data)).flatten();
                list.map(|list| item(&list, key))
            })
        }
    };
    selected.unwrap_or(Data::UNDEFINED)
}

fn place(key: &Data, length: usize) -> Option<usize> {
    if !key.is_integer() {
        return None;
    }
    let index = key.as_i64()?;
    match usize::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

/// Returns the list that a filter's input acts as, if the filter iterates over a list.
pub(super) fn items_for(filter: &str, arguments: &[Data]) -> Option<Data> {
    let input = arguments.first().filter(|input| input.kind() == ValueKind::Map)?;
    OF_LISTS.contains(&filter).then(|| items(input)).flatten()
}

/// Returns `true` if data has the form of a loop step's result.
pub(super) fn is_loop(data: &Data) -> bool {
    let others = match data.len() {
        Some(3) => true,
        Some(4) => field(data, "data").is_some(),
        _ => false,
    };
    others
        && is(data, "results", ValueKind::Seq)
        && is(data, "errors", ValueKind::Seq)
        && field(data, "stats").is_some_and(|stats| field(&stats, "total").is_some())
}

fn is(data: &Data, key: &str, kind: ValueKind) -> bool {
    field(data, key).is_some_and(|value| value.kind() == kind)
}

/// Returns the list that a map acts as: the item results of a loop, or the rows of an SQL result.
pub fn items_of(value: &Value) -> Option<&Vec<Value>> {
    let map = value.as_object()?;
    let list = |key: &str| map.get(key).and_then(Value::as_array);
    let is_loop = map.len() == 3 || map.len() == 4 && map.contains_key("data");
    if is_loop
        && list("errors").is_some()
        && map.get("stats").is_some_and(|stats| stats.get("total").is_some())
        && let Some(results) = list("results")
    {
        return Some(results);
    }
    let counted = map.get("row_count").is_some_and(Value::is_number);
    list("rows").filter(|_| counted && list("columns").is_some())
}
