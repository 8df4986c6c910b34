//! Filters and tests: the closed list of functions that an expression can call by name.
//!
//! Uses minijinja's own where they agree with Jinja2 and with the limits, and replacements where
//! text, nulls, types, or sizes differ. The list is fixed at process start, so an unknown name is
//! reported when a playbook is compiled.

mod codec;
mod list;
mod number;
mod pattern;
mod text;
mod time;

use std::collections::HashMap;
use std::sync::LazyLock;

use minijinja::functions::Function;
use minijinja::value::{ArgType, FunctionArgs, FunctionResult, Kwargs, Rest, ValueOrKwargs};
use minijinja::{Environment, Error, State, filters, tests};

use super::data::Data;
use super::error::EvalError;
use super::ops::{self, Comparison};

/// A callable filter or test.
#[derive(Clone)]
pub(super) struct Filter {
    pub(super) name: &'static str,
    pub(super) callable: Data,
    pub(super) cost: Cost,
}

/// Cost class of a filter, by its use of the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    /// Reads the arguments once.
    Read,
    /// Visits the arguments deeply: lists item by item, text character by character.
    TakeApart,
    /// Parses text to values.
    Parse,
    /// Compiles a pattern, which takes as long as hundreds of operations.
    Pattern,
    /// Applies another filter or test to each item; see `higher`.
    Higher,
}

/// Returns the filter called `name`.
pub(super) fn filter(name: &str) -> Option<Filter> {
    LIBRARY.filters.get(name).cloned()
}

/// Returns the test called `name`.
pub(super) fn test(name: &str) -> Option<Filter> {
    LIBRARY.tests.get(name).cloned()
}

/// Returns the function of a method, which receives the target as its first argument.
pub(super) fn method(name: &str) -> Option<Filter> {
    LIBRARY.methods.get(name).cloned().or_else(|| filter(name))
}

/// Returns the minijinja state in which filters run.
pub(super) fn state() -> State<'static, 'static> {
    LIBRARY.environment.empty_state()
}

/// Returns the known name closest to an unknown one.
pub(super) fn similar(what: &str, name: &str) -> Option<&'static str> {
    /// Minimum similarity of a suggestion. Below it, a suggestion would be a guess.
    const LIKENESS_MIN: f64 = 0.75;
    let known = if what == "test" { &LIBRARY.tests } else { &LIBRARY.filters };
    known
        .keys()
        .map(|known| (strsim::jaro_winkler(known, name), *known))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(a.1)))
        .map(|(_, known)| known)
}

static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    let mut library = Library {
        environment: Environment::empty(),
        filters: HashMap::new(),
        tests: HashMap::new(),
        methods: HashMap::new(),
    };
    library.environment.set_undefined_behavior(minijinja::UndefinedBehavior::Chainable);
    library.environment.set_debug(false);
    register_builtins(&mut library);
    register_tests(&mut library);
    text::register(&mut library);
    list::register(&mut library);
    number::register(&mut library);
    codec::register(&mut library);
    pattern::register(&mut library);
    time::register(&mut library);
    library
});

struct Library {
    /// Environment without filters. Provides only the state that minijinja's own filters require.
    environment: Environment<'static>,
    filters: HashMap<&'static str, Filter>,
    tests: HashMap<&'static str, Filter>,
    methods: HashMap<&'static str, Filter>,
}

impl Library {
    /// Registers a filter that reads its arguments once.
    fn filter<F, Rv, Args>(&mut self, name: &'static str, f: F)
    where
        F: Function<Rv, Args>,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        self.costly(name, Cost::Read, f);
    }

    fn costly<F, Rv, Args>(&mut self, name: &'static str, cost: Cost, f: F)
    where
        F: Function<Rv, Args>,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        self.filters.insert(name, named(name, cost, f));
    }

    fn test<F, Rv, Args>(&mut self, name: &'static str, cost: Cost, f: F)
    where
        F: Function<Rv, Args>,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        self.tests.insert(name, named(name, cost, f));
    }

    /// Registers a function that is available only as a method.
    fn method<F, Rv, Args>(&mut self, name: &'static str, cost: Cost, f: F)
    where
        F: Function<Rv, Args>,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        self.methods.insert(name, named(name, cost, f));
    }
}

fn named<F, Rv, Args>(name: &'static str, cost: Cost, f: F) -> Filter
where
    F: Function<Rv, Args>,
    Rv: FunctionResult,
    Args: for<'a> FunctionArgs<'a>,
{
    Filter { name, callable: Data::from_function(f), cost }
}

/// Registers minijinja's filters that need no change.
fn register_builtins(library: &mut Library) {
    library.filter("abs", filters::abs);
    library.filter("attr", filters::attr);
    library.filter("round", filters::round);
    library.costly("dictsort", Cost::TakeApart, filters::dictsort);
    library.costly("groupby", Cost::TakeApart, filters::groupby);
    library.costly("max", Cost::TakeApart, filters::max);
    library.costly("min", Cost::TakeApart, filters::min);
    library.costly("reverse", Cost::TakeApart, filters::reverse);
    library.costly("sort", Cost::TakeApart, filters::sort);
    library.costly("sum", Cost::TakeApart, filters::sum);
    library.costly("unique", Cost::TakeApart, filters::unique);
    for name in ["map", "select", "reject", "selectattr", "rejectattr"] {
        library.costly(name, Cost::Higher, |_: Rest<ValueOrKwargs>| Data::UNDEFINED);
    }
}

fn register_tests(library: &mut Library) {
    library.test("undefined", Cost::Read, tests::is_undefined);
    library.test("defined", Cost::Read, tests::is_defined);
    library.test("none", Cost::Read, tests::is_none);
    library.test("null", Cost::Read, tests::is_none);
    library.test("boolean", Cost::Read, tests::is_boolean);
    library.test("odd", Cost::Read, tests::is_odd);
    library.test("even", Cost::Read, tests::is_even);
    library.test("divisibleby", Cost::Read, tests::is_divisibleby);
    library.test("number", Cost::Read, tests::is_number);
    library.test("integer", Cost::Read, tests::is_integer);
    library.test("float", Cost::Read, tests::is_float);
    library.test("string", Cost::Read, tests::is_string);
    library.test("sequence", Cost::Read, tests::is_sequence);
    library.test("iterable", Cost::Read, tests::is_iterable);
    library.test("mapping", Cost::Read, tests::is_mapping);
    library.test("startingwith", Cost::Read, tests::is_startingwith);
    library.test("endingwith", Cost::Read, tests::is_endingwith);
    library.test("lower", Cost::Read, tests::is_lower);
    library.test("upper", Cost::Read, tests::is_upper);
    library.test("sameas", Cost::Read, tests::is_sameas);
    library.test("true", Cost::Read, |value: &Data| is_bool(value, true));
    library.test("false", Cost::Read, |value: &Data| is_bool(value, false));
    library.test("empty", Cost::Read, |value: &Data| {
        !value.is_true() && value.len().unwrap_or(0) == 0
    });
    let comparisons: [(&[&str], Comparison); 7] = [
        (&["eq", "equalto", "=="], Comparison::Equal),
        (&["ne", "!="], Comparison::NotEqual),
        (&["lt", "lessthan", "<"], Comparison::Less),
        (&["le", "<="], Comparison::LessOrEqual),
        (&["gt", "greaterthan", ">"], Comparison::Greater),
        (&["ge", ">="], Comparison::GreaterOrEqual),
        (&["in"], Comparison::In),
    ];
    for (names, comparison) in comparisons {
        for name in names {
            library.test(name, Cost::TakeApart, move |left: &Data, right: &Data| {
                ops::compare(comparison, left, right).map_err(Error::from)
            });
        }
    }
}

fn is_bool(value: &Data, wanted: bool) -> bool {
    value.kind() == minijinja::value::ValueKind::Bool && value.is_true() == wanted
}

/// Returns an argument given by position or by name.
fn argument<'a, T>(
    positional: Option<T>,
    named: &'a Kwargs,
    name: &'a str,
) -> Result<Option<T>, Error>
where
    Option<T>: ArgType<'a, Output = Option<T>>,
{
    match positional {
        Some(value) => Ok(Some(value)),
        None => named.get(name),
    }
}

fn fail<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(EvalError::new(message).into())
}
