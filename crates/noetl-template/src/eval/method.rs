//! Methods on values, for authors who write Python.
//!
//! Most are filters under another name. Data is never callable, so a key and a method of the same
//! name coexist: `m.items` is the key, `m.items()` is the method.

use super::Evaluation;
use crate::data::Data;
use crate::error::EvalError;
use crate::json::show;
use crate::library;
use crate::object::LoopState;

/// Methods that would change a value in place.
const CHANGING: [&str; 11] = [
    "add",
    "append",
    "clear",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "setdefault",
    "sort",
    "update",
];

pub(super) fn call(
    run: &mut Evaluation<'_>,
    target: &Data,
    name: &str,
    arguments: &[Data],
) -> Result<Data, EvalError> {
    if name == "cycle"
        && let Some(state) = target.downcast_object_ref::<LoopState>()
    {
        return Ok(state.cycle(arguments));
    }
    if name == "join" {
        return join(run, target, arguments);
    }
    let Some(filter) = filter_of(target, name) else {
        return Err(unknown(target, name));
    };
    let mut all = Vec::with_capacity(1 + arguments.len());
    all.push(target.clone());
    all.extend_from_slice(arguments);
    run.apply(&filter, &all)
}

fn filter_of(target: &Data, name: &str) -> Option<library::Filter> {
    use minijinja::value::ValueKind as Kind;
    let filter = match (target.kind(), name) {
        (Kind::Map, "get" | "keys" | "values" | "items") => name,
        (Kind::Undefined | Kind::None, "get") => name,
        (Kind::Seq | Kind::Iterable | Kind::String, "count") => "count_of",
        (Kind::Seq | Kind::Iterable | Kind::String, "index") => "index_of",
        (Kind::String, "strip") => "trim",
        (Kind::String, "splitlines") => "lines",
        (
            Kind::String,
            "upper" | "lower" | "title" | "capitalize" | "replace" | "split" | "lstrip" | "rstrip"
            | "startswith" | "endswith" | "find" | "isdigit" | "isalpha" | "isalnum" | "zfill"
            | "removeprefix" | "removesuffix" | "format",
        ) => name,
        _ => return None,
    };
    library::method(filter)
}

/// Evaluates `', '.join(list)`: the text is the target, the list the argument.
fn join(run: &mut Evaluation<'_>, target: &Data, arguments: &[Data]) -> Result<Data, EvalError> {
    let ([list], Some(_), Some(filter)) = (arguments, target.as_str(), library::filter("join"))
    else {
        return Err(unknown(target, "join"));
    };
    run.apply(&filter, &[list.clone(), target.clone()])
}

fn unknown(target: &Data, name: &str) -> EvalError {
    if CHANGING.contains(&name) {
        return EvalError::new(format!(
            "values are immutable: .{name}() cannot change {}; build a new value with + or a filter",
            show(target)
        ));
    }
    if target.is_undefined() {
        return EvalError::new(format!("cannot call .{name}() on an undefined value"));
    }
    EvalError::new(format!("there is no method .{name}() on {} ({})", show(target), target.kind()))
}
