//! Functions that templates can call.

use std::sync::Arc;

use minijinja::value::{Kwargs, Rest, Value, ValueKind, from_args};

use super::Evaluation;
use crate::data::Data;
use crate::entropy::mix;
use crate::error::EvalError;
use crate::json::show;
use crate::library;
use crate::limit::check_items;
use crate::object::Namespace;
use crate::program::Function;

/// Calls a function with evaluated arguments.
pub(super) fn call(
    run: &mut Evaluation<'_>,
    function: &Function,
    arguments: &[Data],
) -> Result<Data, EvalError> {
    match function {
        Function::Range => range(run, arguments),
        Function::Now => now(run, arguments),
        Function::Uuid4 => Ok(uuid4(run)),
        Function::Dict => dict(arguments),
        Function::Namespace => namespace(arguments),
        Function::Zip => filter(run, "zip", arguments),
        Function::Min => extreme(run, "min", arguments),
        Function::Max => extreme(run, "max", arguments),
        Function::Filter(filter) => run.apply(filter, arguments),
        Function::Unknown(name) => Err(EvalError::new(format!("there is no function `{name}`"))),
    }
}

fn filter(run: &mut Evaluation<'_>, name: &str, arguments: &[Data]) -> Result<Data, EvalError> {
    let filter = library::filter(name)
        .ok_or_else(|| EvalError::new(format!("there is no filter `{name}`")))?;
    run.apply(&filter, arguments)
}

/// Evaluates `min(1, 2)` and `min([1, 2])`, or `max` likewise.
fn extreme(run: &mut Evaluation<'_>, name: &str, arguments: &[Data]) -> Result<Data, EvalError> {
    let several = arguments.len() > 1 && !arguments[1].is_kwargs();
    if several {
        return filter(run, name, &[Data::from(arguments.to_vec())]);
    }
    filter(run, name, arguments)
}

fn range(run: &mut Evaluation<'_>, arguments: &[Data]) -> Result<Data, EvalError> {
    let (first, second, step): (i64, Option<i64>, Option<i64>) = from_args(arguments)?;
    let (start, stop) = second.map_or((0, first), |stop| (first, stop));
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(EvalError::new("range() needs a step other than 0"));
    }
    let distance = if step > 0 {
        i128::from(stop) - i128::from(start)
    } else {
        i128::from(start) - i128::from(stop)
    };
    let width = i128::from(step.unsigned_abs());
    let items = (distance.max(0) + width - 1) / width;
    let items = check_items(usize::try_from(items).ok())?;
    run.fuel.burn(items)?;
    let mut values = Vec::with_capacity(items);
    let mut value = start;
    for _ in 0..items {
        values.push(Data::from(value));
        value = value.saturating_add(step);
    }
    Ok(Data::from(values))
}

/// Formats the scope's time as RFC 3339 in UTC, or with a `strftime` format.
fn now(run: &mut Evaluation<'_>, arguments: &[Data]) -> Result<Data, EvalError> {
    let (format,): (Option<&str>,) = from_args(arguments)?;
    match format {
        None => Ok(Data::from(run.scope.now.to_string())),
        Some(format) => {
            let now = Data::from(run.scope.now.to_string());
            filter(run, "strftime", &[now, Data::from(format)])
        }
    }
}

/// Generates a version 4 UUID from the scope's entropy.
fn uuid4(run: &mut Evaluation<'_>) -> Data {
    let (first, second) = (run.scope.entropy.draw(), run.scope.entropy.draw());
    let high = u128::from(mix(mix(first) ^ 0x6e6f_6574_6c00_0001));
    let low = u128::from(mix(mix(second) ^ 0x6e6f_6574_6c00_0002));
    let bits = (high << 64 | low) & !(0xf << 76) & !(0b11 << 62) | 4 << 76 | 0b10 << 62;
    let hex = format!("{bits:032x}");
    Data::from(format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    ))
}

/// Evaluates `dict(a=1)`, `dict({'a': 1}, b=2)`, and `dict([['a', 1]])`.
fn dict(arguments: &[Data]) -> Result<Data, EvalError> {
    let (base, named): (Option<Value>, Kwargs) = from_args(arguments)?;
    let mut pairs: Vec<(Data, Data)> = Vec::new();
    match base {
        None => {}
        Some(base) if base.kind() == ValueKind::Map => {
            let own = base.as_object().and_then(|map| map.try_iter_pairs());
            pairs.extend(own.into_iter().flatten());
        }
        Some(base) => {
            for pair in base.try_iter()? {
                let parts: Vec<Data> = pair.try_iter()?.take(3).collect();
                match <[Data; 2]>::try_from(parts) {
                    Ok([key, value]) => pairs.push((key, value)),
                    Err(_) => {
                        return Err(EvalError::new(format!("{} is not a pair", show(&pair))));
                    }
                }
            }
        }
    }
    for name in named.args() {
        pairs.push((Data::from(name), named.peek(name)?));
    }
    Ok(Data::from_pairs(pairs))
}

fn namespace(arguments: &[Data]) -> Result<Data, EvalError> {
    let (none, named): (Rest<Value>, Kwargs) = from_args(arguments)?;
    if !none.is_empty() {
        return Err(EvalError::new("namespace() takes named values only"));
    }
    let mut fields = Vec::new();
    for name in named.args() {
        let value: Data = named.peek(name)?;
        if value.downcast_object_ref::<Namespace>().is_some() {
            return Err(EvalError::new("a namespace() cannot be put into another value"));
        }
        fields.push((Arc::from(name), value));
    }
    Ok(Data::from_object(Namespace::new(fields)))
}
