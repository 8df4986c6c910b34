//! Filters that apply another filter or test to each item.
//!
//! They run here instead of in minijinja, so that every application counts toward the budget: a
//! filter applied to 100,000 items costs 100,000 applications.

use minijinja::value::Kwargs;

use super::Evaluation;
use crate::data::Data;
use crate::error::EvalError;
use crate::json::show;
use crate::library::{self, Cost, Filter};
use crate::limit::check_items;
use crate::listed::item;

/// Calls `map`, `select`, `reject`, `selectattr`, or `rejectattr`.
pub(super) fn call(
    run: &mut Evaluation<'_>,
    name: &str,
    arguments: &[Data],
) -> Result<Data, EvalError> {
    let Some((input, rest)) = arguments.split_first() else {
        return Err(EvalError::new(format!("{name}: there is nothing to go through")));
    };
    check_items(Some(input.len().unwrap_or(0)))?;
    let items = input
        .try_iter()
        .map_err(|_| EvalError::new(format!("{name}: cannot go through {}", show(input))))?;
    let each: Vec<Data> = items.collect();
    let done = match name {
        "map" => map(run, each, rest),
        "select" | "reject" => choose(run, each, None, rest, name == "select"),
        _ => match rest.split_first() {
            Some((attribute, rest)) => {
                choose(run, each, Some(attribute), rest, name == "selectattr")
            }
            None => Err(EvalError::new("an attribute is needed")),
        },
    };
    done.map(Data::from).map_err(|EvalError(reason)| EvalError(format!("{name}: {reason}")))
}

fn map(run: &mut Evaluation<'_>, items: Vec<Data>, rest: &[Data]) -> Result<Vec<Data>, EvalError> {
    let Some((first, arguments)) = rest.split_first() else {
        return Err(EvalError::new("the name of a filter or an attribute is needed"));
    };
    if first.is_kwargs() {
        let named = Kwargs::try_from(first.clone())?;
        let attribute: Data = named.get("attribute")?;
        let default: Option<Data> = named.get("default")?;
        named.assert_all_used()?;
        let pick = |item: Data| match read(&item, &attribute) {
            missing if missing.is_undefined() => default.clone().unwrap_or_default(),
            value => value,
        };
        run.fuel.burn(items.len())?;
        return Ok(items.into_iter().map(pick).collect());
    }
    let filter = named("filter", first.as_str().and_then(library::filter), first)?;
    let mut mapped = Vec::with_capacity(items.len());
    for item in items {
        mapped.push(apply(run, &filter, item, arguments)?);
    }
    Ok(mapped)
}

fn choose(
    run: &mut Evaluation<'_>,
    items: Vec<Data>,
    attribute: Option<&Data>,
    rest: &[Data],
    wanted: bool,
) -> Result<Vec<Data>, EvalError> {
    let test = match rest.split_first() {
        Some((name, arguments)) => {
            let test = named("test", name.as_str().and_then(library::test), name)?;
            Some((test, arguments))
        }
        None => None,
    };
    let mut chosen = Vec::new();
    for item in items {
        let judged = attribute.map_or_else(|| item.clone(), |attribute| read(&item, attribute));
        let holds = match &test {
            Some((test, arguments)) => apply(run, test, judged, arguments)?.is_true(),
            None => judged.is_true(),
        };
        run.fuel.burn(1)?;
        if holds == wanted {
            chosen.push(item);
        }
    }
    Ok(chosen)
}

fn apply(
    run: &mut Evaluation<'_>,
    filter: &Filter,
    item: Data,
    arguments: &[Data],
) -> Result<Data, EvalError> {
    let mut all = Vec::with_capacity(1 + arguments.len());
    all.push(item);
    all.extend_from_slice(arguments);
    run.fuel.burn(1)?;
    run.apply(filter, &all)
}

fn named(what: &str, filter_option: Option<Filter>, name: &Data) -> Result<Filter, EvalError> {
    match filter_option {
        Some(filter) if filter.cost == Cost::Higher => {
            Err(EvalError::new(format!("`{}` cannot be applied to each item", filter.name)))
        }
        Some(filter) => Ok(filter),
        None => Err(EvalError::new(format!("there is no {what} called {}", show(name)))),
    }
}

/// Reads an attribute, an index, or a dotted path of both.
fn read(value: &Data, attribute: &Data) -> Data {
    let Some(path) = attribute.as_str() else {
        return item(value, attribute);
    };
    path.split('.').fold(value.clone(), |value, part| {
        let place = part.parse::<i64>().map(Data::from);
        item(&value, &place.unwrap_or_else(|_| Data::from(part)))
    })
}
