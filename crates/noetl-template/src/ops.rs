//! Operators: arithmetic without silent overflow, and comparisons without implicit conversion.

use std::cmp::Ordering;

use minijinja::value::ValueKind;

use super::data::Data;
use super::error::EvalError;
use super::json::{show, text};
use super::limit::{Fuel, check_items, check_text};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
    Concat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}

impl Comparison {
    /// Returns `true` for comparisons that order their operands.
    pub(super) const fn is_ordering(self) -> bool {
        match self {
            Self::Less | Self::LessOrEqual | Self::Greater | Self::GreaterOrEqual => true,
            Self::Equal | Self::NotEqual | Self::In | Self::NotIn => false,
        }
    }
}

/// Computes `left operator right`. `written` is the source text, for messages.
pub(super) fn arithmetic(
    operator: Operator,
    left: &Data,
    right: &Data,
    written: &str,
    fuel: &mut Fuel,
) -> Result<Data, EvalError> {
    match operator {
        Operator::Concat => return concat(left, right, fuel),
        Operator::Add if left.kind() == ValueKind::String && right.kind() == ValueKind::String => {
            return concat(left, right, fuel);
        }
        Operator::Add if is_list(left) && is_list(right) => return append(left, right, fuel),
        Operator::Multiply => {
            if let Some(repeated) = repeat(left, right, fuel)? {
                return Ok(repeated);
            }
        }
        _ => {}
    }
    let (Some(a), Some(b)) = (Num::from_data(left), Num::from_data(right)) else {
        return Err(EvalError::new(format!(
            "cannot compute `{written}` of {} ({}) and {} ({})",
            show(left),
            left.kind(),
            show(right),
            right.kind()
        )));
    };
    let computed = match (a, b) {
        (Num::Int(a), Num::Int(b)) => integers(operator, a, b),
        (a, b) => floats(operator, a.float(), b.float()),
    };
    computed
        .and_then(Num::into_data)
        .map_err(|reason| EvalError::new(format!("{reason} in `{written}`")))
}

/// Negates a number, or fails if it is none.
pub(super) fn negate(value: &Data) -> Result<Data, EvalError> {
    match Num::from_data(value) {
        Some(Num::Int(value)) => Num::Int(-value).into_data().map_err(EvalError::new),
        Some(Num::Float(value)) => Ok(Data::from(-value)),
        None => Err(EvalError::new(format!("cannot negate {}", show(value)))),
    }
}

/// Returns `true` if `left comparison right` is true.
pub(super) fn compare(
    comparison: Comparison,
    left: &Data,
    right: &Data,
) -> Result<bool, EvalError> {
    let ordering = |accept: fn(Ordering) -> bool| -> Result<bool, EvalError> {
        Ok(order(left, right)?.is_some_and(accept))
    };
    match comparison {
        Comparison::Equal => Ok(equal(left, right)),
        Comparison::NotEqual => Ok(!equal(left, right)),
        Comparison::Less => ordering(Ordering::is_lt),
        Comparison::LessOrEqual => ordering(Ordering::is_le),
        Comparison::Greater => ordering(Ordering::is_gt),
        Comparison::GreaterOrEqual => ordering(Ordering::is_ge),
        Comparison::In => contains(right, left),
        Comparison::NotIn => contains(right, left).map(|contains_item| !contains_item),
    }
}

/// Compares without conversions: `1 == 1.0` is true, `1 == true` and `1 == '1'` are false.
fn equal(left: &Data, right: &Data) -> bool {
    if (left.kind() == ValueKind::Bool) != (right.kind() == ValueKind::Bool) {
        return false;
    }
    left == right
}

/// Orders two values of the same type. Returns `None` if they are unordered (NaN).
fn order(left: &Data, right: &Data) -> Result<Option<Ordering>, EvalError> {
    match (left.kind(), right.kind()) {
        (ValueKind::Number, ValueKind::Number) => {
            Ok(match (Num::from_data(left), Num::from_data(right)) {
                (Some(Num::Int(a)), Some(Num::Int(b))) => Some(a.cmp(&b)),
                (Some(a), Some(b)) => a.float().partial_cmp(&b.float()),
                _ => None,
            })
        }
        (ValueKind::String, ValueKind::String) => Ok(Some(left.as_str().cmp(&right.as_str()))),
        (ValueKind::Bool, ValueKind::Bool) => Ok(Some(left.is_true().cmp(&right.is_true()))),
        _ if is_list(left) && is_list(right) => {
            for (a, b) in left.try_iter()?.zip(right.try_iter()?) {
                match order(&a, &b)? {
                    Some(Ordering::Equal) => {}
                    decided => return Ok(decided),
                }
            }
            Ok(Some(left.len().cmp(&right.len())))
        }
        (a, b) => Err(EvalError::new(format!(
            "cannot order {} ({a}) and {} ({b})",
            show(left),
            show(right)
        ))),
    }
}

/// Returns `true` if a list contains an item, a map a key, or a text a substring. Undefined and
/// null contain nothing.
fn contains(container: &Data, value: &Data) -> Result<bool, EvalError> {
    match container.kind() {
        ValueKind::Undefined | ValueKind::None => Ok(false),
        ValueKind::String => Ok(container.as_str().unwrap_or_default().contains(&*text(value)?)),
        ValueKind::Map => {
            Ok(container.as_object().is_some_and(|map| map.get_value(value).is_some()))
        }
        ValueKind::Seq | ValueKind::Iterable => {
            for item in container.try_iter()?.checked() {
                if equal(&item?, value) {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        kind => Err(EvalError::new(format!(
            "cannot look for {} in {} ({kind})",
            show(value),
            show(container)
        ))),
    }
}

pub(super) fn is_list(value: &Data) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

/// A number as operators see it. A boolean counts as 0 or 1, as in Jinja.
enum Num {
    Int(i128),
    Float(f64),
}

impl Num {
    fn from_data(value: &Data) -> Option<Self> {
        match value.kind() {
            ValueKind::Bool => Some(Self::Int(i128::from(value.is_true()))),
            ValueKind::Number if value.is_integer() => {
                i128::try_from(value.clone()).ok().map(Self::Int)
            }
            ValueKind::Number => f64::try_from(value.clone()).ok().map(Self::Float),
            _ => None,
        }
    }

    fn float(&self) -> f64 {
        match *self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    /// Converts back to a value, unless JSON cannot represent it.
    fn into_data(self) -> Result<Data, String> {
        match self {
            Self::Int(value) => i64::try_from(value)
                .map(Data::from)
                .or_else(|_| u64::try_from(value).map(Data::from))
                .map_err(|_| format!("integer overflow: {value} does not fit 64 bits")),
            Self::Float(value) if value.is_finite() => Ok(Data::from(value)),
            Self::Float(value) => Err(format!("{value} is not a finite number")),
        }
    }
}

fn integers(operator: Operator, a: i128, b: i128) -> Result<Num, String> {
    let divides =
        matches!(operator, Operator::Divide | Operator::FloorDivide | Operator::Remainder);
    if divides && b == 0 || operator == Operator::Power && a == 0 && b < 0 {
        return Err("division by zero".to_owned());
    }
    let computed = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::FloorDivide => a.checked_div_euclid(b).map(|quotient| {
            // Euclidean division rounds up if the divisor is negative and a remainder is left.
            quotient - i128::from(b < 0 && a.rem_euclid(b) != 0)
        }),
        Operator::Remainder => a
            .checked_rem(b)
            .map(|rest| if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }),
        Operator::Power if b >= 0 => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
        Operator::Power | Operator::Divide | Operator::Concat => {
            return floats(operator, Num::Int(a).float(), Num::Int(b).float());
        }
    };
    computed.map(Num::Int).ok_or_else(|| "integer overflow".to_owned())
}

fn floats(operator: Operator, a: f64, b: f64) -> Result<Num, String> {
    let divides =
        matches!(operator, Operator::Divide | Operator::FloorDivide | Operator::Remainder);
    if divides && b == 0.0 || operator == Operator::Power && a == 0.0 && b < 0.0 {
        return Err("division by zero".to_owned());
    }
    Ok(Num::Float(match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        Operator::FloorDivide => (a / b).floor(),
        Operator::Remainder => {
            let rest = a % b;
            if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
        }
        Operator::Power => a.powf(b),
        Operator::Concat => return Err("text is not computed with".to_owned()),
    }))
}

fn concat(left: &Data, right: &Data, fuel: &mut Fuel) -> Result<Data, EvalError> {
    let (left, right) = (text(left)?, text(right)?);
    let bytes = check_text(left.len().checked_add(right.len()))?;
    fuel.burn_text(bytes)?;
    Ok(Data::from([&*left, &*right].concat()))
}

fn append(left: &Data, right: &Data, fuel: &mut Fuel) -> Result<Data, EvalError> {
    let length = left.len().unwrap_or(0).checked_add(right.len().unwrap_or(0));
    fuel.burn(check_items(length)?)?;
    Ok(left.try_iter()?.chain(right.try_iter()?).collect::<Vec<_>>().into())
}

/// Repeats text or a list: `'ab' * 3` and `[0] * 3`, in either order. Returns `None` if neither
/// side can be repeated.
fn repeat(left: &Data, right: &Data, fuel: &mut Fuel) -> Result<Option<Data>, EvalError> {
    let repeatable = |value: &Data| value.kind() == ValueKind::String || is_list(value);
    let (value, times) = match (repeatable(left), repeatable(right)) {
        (true, false) if right.is_integer() => (left, right),
        (false, true) if left.is_integer() => (right, left),
        _ => return Ok(None),
    };
    // As in Python, a negative count yields an empty value.
    let times = i128::try_from(times.clone())?.max(0);
    let times = usize::try_from(times).unwrap_or(usize::MAX);
    if let Some(unit) = value.as_str() {
        fuel.burn_text(check_text(unit.len().checked_mul(times))?)?;
        return Ok(Some(Data::from(unit.repeat(times))));
    }
    let items = value.try_iter()?.collect::<Vec<_>>();
    let length = check_items(items.len().checked_mul(times))?;
    fuel.burn(length)?;
    let repeated = items.into_iter().cycle().take(length);
    Ok(Some(Data::from(repeated.collect::<Vec<_>>())))
}
