//! Filters on lists and maps.

use minijinja::value::{Kwargs, Rest, ValueKind, ValueOrKwargs, from_args};
use minijinja::{Error, ErrorKind};

use super::{Cost, Library, argument, fail};
use crate::data::Data;
use crate::json::{show, text};
use crate::limit::{DEPTH_MAX, ITEMS_MAX, check_items, too_deep};
use crate::listed::item;
use crate::ops::is_list;

pub(super) fn register(library: &mut Library) {
    for name in ["default", "d"] {
        library.filter(name, default);
    }
    for name in ["length", "count", "len"] {
        library.filter(name, length);
    }
    library.costly("list", Cost::TakeApart, list);
    library.filter("first", |v: &Data| end(v, false));
    library.filter("last", |v: &Data| end(v, true));
    library.filter("get", get);
    library.filter("keys", |v: &Data| {
        pairs(v).map(|p| p.into_iter().map(|(k, _)| k).collect::<Vec<_>>())
    });
    library.filter("values", |v: &Data| {
        pairs(v).map(|p| p.into_iter().map(|(_, v)| v).collect::<Vec<_>>())
    });
    library.filter("items", |v: &Data| {
        pairs(v).map(|p| p.into_iter().map(|(k, v)| Data::from(vec![k, v])).collect::<Vec<_>>())
    });
    library.costly("flatten", Cost::TakeApart, flatten);
    library.costly("zip", Cost::TakeApart, zip);
    library.costly("batch", Cost::TakeApart, batch);
    library.costly("slice", Cost::TakeApart, slice);
    library.method("count_of", Cost::TakeApart, count_of);
    library.method("index_of", Cost::TakeApart, index_of);
}

/// Replaces undefined values, and with `boolean` also false ones. Null is a value: it is not
/// replaced, and it can be the replacement.
fn default(value: &Data, arguments: Rest<ValueOrKwargs>) -> Result<Data, Error> {
    // Decoded by hand, because an optional argument could not distinguish null from absence.
    let arguments: Vec<Data> = arguments.iter().map(|argument| Data::clone(argument)).collect();
    let (arguments, named): (&[Data], Kwargs) = from_args(&arguments)?;
    if arguments.len() > 2 {
        return Err(Error::from(ErrorKind::TooManyArguments));
    }
    let named_default = ["default_value", "default"].into_iter().find(|name| named.has(name));
    let default = match (arguments.first(), named_default) {
        (Some(default), _) => Some(default.clone()),
        (None, Some(name)) => Some(named.get(name)?),
        (None, None) => None,
    };
    let boolean = arguments.get(1).map(Data::is_true);
    let boolean = argument(boolean, &named, "boolean")?.unwrap_or(false);
    named.assert_all_used()?;
    if value.is_undefined() || boolean && !value.is_true() {
        return Ok(default.unwrap_or_else(|| Data::from("")));
    }
    Ok(value.clone())
}

/// Returns the length of a value. Undefined and null have length 0.
fn length(value: &Data) -> Result<usize, Error> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok(0),
        _ => match value.len() {
            Some(length) => Ok(length),
            None => fail(format!("a {} has no length", value.kind())),
        },
    }
}

fn list(value: &Data) -> Result<Vec<Data>, Error> {
    check_items(Some(value.len().unwrap_or(0)))?;
    value.try_iter()?.checked().collect()
}

/// Returns the first or last item, or undefined if there is none.
fn end(value: &Data, last: bool) -> Result<Data, Error> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok(Data::UNDEFINED),
        ValueKind::String => {
            let mut chars = value.as_str().unwrap_or_default().chars();
            let end = if last { chars.next_back() } else { chars.next() };
            Ok(end.map_or(Data::UNDEFINED, |c| Data::from(c.to_string())))
        }
        ValueKind::Map if !last => Ok(value.try_iter()?.next().unwrap_or_default()),
        ValueKind::Seq | ValueKind::Iterable => {
            Ok(item(value, &Data::from(if last { -1 } else { 0 })))
        }
        kind => fail(format!("a {kind} has no items")),
    }
}

/// Returns the value of a key or list index, or the default.
fn get(value: &Data, key: &Data, default: Option<Data>) -> Data {
    let item_or_undefined = item(value, key);
    if item_or_undefined.is_undefined() {
        return default.unwrap_or_else(|| Data::from(()));
    }
    item_or_undefined
}

fn pairs(value: &Data) -> Result<Vec<(Data, Data)>, Error> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok(Vec::new()),
        ValueKind::Map => {
            let pairs = value.as_object().and_then(|map| map.try_iter_pairs());
            Ok(pairs.into_iter().flatten().collect())
        }
        kind => fail(format!("a {kind} has no keys")),
    }
}

/// Flattens nested lists, `levels` deep or completely.
fn flatten(value: &Data, levels: Option<usize>, named: Kwargs) -> Result<Vec<Data>, Error> {
    let levels = argument(levels, &named, "levels")?;
    named.assert_all_used()?;
    let mut flat = Vec::new();
    flatten_into(value, levels.unwrap_or(DEPTH_MAX), DEPTH_MAX, &mut flat)?;
    Ok(flat)
}

fn flatten_into(
    value: &Data,
    levels: usize,
    depth: usize,
    flat: &mut Vec<Data>,
) -> Result<(), Error> {
    let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
    for item in value.try_iter()?.checked() {
        let item = item?;
        if levels > 0 && is_list(&item) {
            flatten_into(&item, levels - 1, depth, flat)?;
        } else {
            flat.push(item);
            check_items(Some(flat.len()))?;
        }
    }
    Ok(())
}

/// Combines lists item by item, up to the length of the shortest.
fn zip(value: &Data, others: Rest<Data>) -> Result<Vec<Data>, Error> {
    let mut columns = vec![value.try_iter()?];
    for other in others.iter() {
        columns.push(other.try_iter()?);
    }
    let mut rows = Vec::new();
    loop {
        let row: Option<Vec<Data>> = columns.iter_mut().map(Iterator::next).collect();
        match row {
            Some(row) => rows.push(Data::from(row)),
            None => return Ok(rows),
        }
        check_items(Some(rows.len()))?;
    }
}

/// Splits a list into rows of `count` items. Pads the last row if a filler is given.
fn batch(
    value: &Data,
    count: usize,
    fill: Option<Data>,
    named: Kwargs,
) -> Result<Vec<Data>, Error> {
    let fill = argument(fill, &named, "fill_with")?;
    named.assert_all_used()?;
    check_count(count)?;
    let items = list(value)?;
    let mut rows: Vec<Vec<Data>> = items.chunks(count).map(<[Data]>::to_vec).collect();
    if let (Some(fill), Some(last)) = (fill, rows.last_mut()) {
        last.resize(count, fill);
    }
    Ok(rows.into_iter().map(Data::from).collect())
}

/// Splits a list into `count` rows of nearly equal length. Pads shorter rows if a filler is given.
fn slice(
    value: &Data,
    count: usize,
    fill: Option<Data>,
    named: Kwargs,
) -> Result<Vec<Data>, Error> {
    let fill = argument(fill, &named, "fill_with")?;
    named.assert_all_used()?;
    check_count(count)?;
    let mut items = list(value)?.into_iter();
    let (each, longer) = (items.len() / count, items.len() % count);
    let mut rows = Vec::with_capacity(count);
    for place in 0..count {
        let length = each + usize::from(place < longer);
        let mut row: Vec<Data> = items.by_ref().take(length).collect();
        if let (Some(fill), true) = (&fill, longer > 0 && place >= longer) {
            row.push(fill.clone());
        }
        rows.push(Data::from(row));
    }
    Ok(rows)
}

fn check_count(count: usize) -> Result<(), Error> {
    if count == 0 || count > ITEMS_MAX {
        return fail(format!("a row count is between 1 and {ITEMS_MAX}"));
    }
    Ok(())
}

fn count_of(value: &Data, wanted: &Data) -> Result<usize, Error> {
    if let Some(whole) = value.as_str() {
        return Ok(whole.matches(&*text(wanted)?).count());
    }
    Ok(value.try_iter()?.filter(|item| item == wanted).count())
}

fn index_of(value: &Data, wanted: &Data) -> Result<usize, Error> {
    let index = match value.as_str() {
        Some(whole) => whole.find(&*text(wanted)?).map(|offset| whole[..offset].chars().count()),
        None => value.try_iter()?.position(|item| item == *wanted),
    };
    match index {
        Some(place) => Ok(place),
        None => fail(format!("{} is not in it", show(wanted))),
    }
}
