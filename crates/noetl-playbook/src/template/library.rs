//! Filters and tests: the closed list of what an expression can call by name.
//!
//! minijinja's own where they agree with Jinja2 and with our limits; ours where text, nulls,
//! types or sizes are at stake. The list is fixed when the process starts, so an unknown name is
//! found when a playbook is compiled.

mod codec;
mod list;
mod number;
mod pattern;
mod text;
mod time;

use std::collections::HashMap;
use std::sync::LazyLock;

use minijinja::functions::Function;
use minijinja::value::{ArgType, FunctionArgs, FunctionResult, Kwargs};
use minijinja::{Environment, Error, State, filters, tests};

use super::Data;
use super::error::Fault;
use super::ops;
use super::program::Comparison;

/// A filter or a test, ready to call.
#[derive(Clone)]
pub(super) struct Filter {
    pub(super) name: &'static str,
    pub(super) callable: Data,
    /// Whether it takes a text apart character by character, and so costs that many operations.
    pub(super) reads_characters: bool,
}

/// The filter called `name`.
pub(super) fn filter(name: &str) -> Option<Filter> {
    LIBRARY.filters.get(name).cloned()
}

/// The test called `name`.
pub(super) fn test(name: &str) -> Option<Filter> {
    LIBRARY.tests.get(name).cloned()
}

/// The function behind a method, which takes its target first.
pub(super) fn method(name: &str) -> Option<Filter> {
    LIBRARY.methods.get(name).cloned().or_else(|| filter(name))
}

/// What filters run in.
pub(super) fn state() -> State<'static, 'static> {
    LIBRARY.environment.empty_state()
}

/// The known name an unknown one was probably meant to be.
pub(super) fn similar(what: &str, name: &str) -> Option<&'static str> {
    /// Below this likeness a suggestion is a guess.
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
    /// Holds the same filters and tests for those that call others: `map('upper')`.
    environment: Environment<'static>,
    filters: HashMap<&'static str, Filter>,
    tests: HashMap<&'static str, Filter>,
    methods: HashMap<&'static str, Filter>,
}

impl Library {
    /// A filter of ours: it reads text at the cost of text.
    fn filter<F, Rv, Args>(&mut self, name: &'static str, f: F)
    where
        F: Function<Rv, Args> + Clone,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        self.environment.add_filter(name, f.clone());
        self.filters.insert(name, named(name, f, false));
    }

    /// A filter that treats a text as the list of its characters.
    fn collection<F, Rv, Args>(&mut self, name: &'static str, f: F)
    where
        F: Function<Rv, Args> + Clone,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        self.environment.add_filter(name, f.clone());
        self.filters.insert(name, named(name, f, true));
    }

    fn test<F, Rv, Args>(&mut self, name: &'static str, f: F)
    where
        F: Function<Rv, Args> + Clone,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        self.environment.add_test(name, f.clone());
        self.tests.insert(name, named(name, f, false));
    }

    /// A function that only a method call reaches.
    fn method<F, Rv, Args>(&mut self, name: &'static str, f: F)
    where
        F: Function<Rv, Args>,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        self.methods.insert(name, named(name, f, false));
    }
}

fn named<F, Rv, Args>(name: &'static str, f: F, reads_characters: bool) -> Filter
where
    F: Function<Rv, Args>,
    Rv: FunctionResult,
    Args: for<'a> FunctionArgs<'a>,
{
    Filter { name, callable: Data::from_function(f), reads_characters }
}

/// minijinja's filters that need no change.
fn register_builtins(library: &mut Library) {
    library.filter("abs", filters::abs);
    library.filter("attr", filters::attr);
    library.filter("round", filters::round);
    library.collection("dictsort", filters::dictsort);
    library.collection("groupby", filters::groupby);
    library.collection("map", filters::map);
    library.collection("max", filters::max);
    library.collection("min", filters::min);
    library.collection("reject", filters::reject);
    library.collection("rejectattr", filters::rejectattr);
    library.collection("reverse", filters::reverse);
    library.collection("select", filters::select);
    library.collection("selectattr", filters::selectattr);
    library.collection("sort", filters::sort);
    library.collection("sum", filters::sum);
    library.collection("unique", filters::unique);
}

fn register_tests(library: &mut Library) {
    library.test("undefined", tests::is_undefined);
    library.test("defined", tests::is_defined);
    library.test("none", tests::is_none);
    library.test("null", tests::is_none);
    library.test("boolean", tests::is_boolean);
    library.test("odd", tests::is_odd);
    library.test("even", tests::is_even);
    library.test("divisibleby", tests::is_divisibleby);
    library.test("number", tests::is_number);
    library.test("integer", tests::is_integer);
    library.test("float", tests::is_float);
    library.test("string", tests::is_string);
    library.test("sequence", tests::is_sequence);
    library.test("iterable", tests::is_iterable);
    library.test("mapping", tests::is_mapping);
    library.test("startingwith", tests::is_startingwith);
    library.test("endingwith", tests::is_endingwith);
    library.test("lower", tests::is_lower);
    library.test("upper", tests::is_upper);
    library.test("sameas", tests::is_sameas);
    library.test("true", |value: &Data| is_bool(value, true));
    library.test("false", |value: &Data| is_bool(value, false));
    library.test("empty", |value: &Data| !value.is_true() && value.len().unwrap_or(0) == 0);
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
            library.test(name, move |left: &Data, right: &Data| {
                ops::compare(comparison, left, right).map_err(Error::from)
            });
        }
    }
}

fn is_bool(value: &Data, wanted: bool) -> bool {
    value.kind() == minijinja::value::ValueKind::Bool && value.is_true() == wanted
}

/// An argument given by place or by name.
fn argument<'a, T>(given: Option<T>, named: &'a Kwargs, name: &'a str) -> Result<Option<T>, Error>
where
    Option<T>: ArgType<'a, Output = Option<T>>,
{
    match given {
        Some(value) => Ok(Some(value)),
        None => named.get(name),
    }
}

fn fail<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Fault::new(message).into())
}
