//! Evaluation of expressions in a scope.

mod function;
mod higher;
mod method;

use std::sync::Arc;

use minijinja::State;
use minijinja::value::{Kwargs, ValueKind};

use super::data::Data;
use super::error::EvalError;
use super::json::show;
use super::library::{self, Cost, Filter};
use super::limit::{Fuel, OutputBudget, check_items};
use super::listed;
use super::ops::{self, Comparison};
use super::path::View;
use super::program::{
    Application, Arguments, Arithmetic, Expr, Function, Method, PathKey, PathRoot, Slice,
};
use super::scope::Scope;

/// A rendering in progress: its scope, local names, and remaining budget.
pub(super) struct Evaluation<'s> {
    pub(super) scope: &'s Scope,
    pub(super) fuel: Fuel,
    pub(super) output: OutputBudget,
    /// Names bound by the template, innermost last.
    pub(super) locals: Vec<(Arc<str>, Data)>,
    /// Index in `locals` at which the innermost block's names start.
    pub(super) frame: usize,
    /// Whether the rendering evaluates a condition.
    in_guard: bool,
    pub(super) loops: usize,
    /// State for minijinja's own filters. Created when the first one runs.
    state: Option<State<'static, 'static>>,
}

impl<'s> Evaluation<'s> {
    pub(super) fn new(scope: &'s Scope) -> Self {
        Self {
            scope,
            fuel: Fuel::full(),
            output: OutputBudget::full(),
            locals: Vec::new(),
            frame: 0,
            in_guard: false,
            loops: 0,
            state: None,
        }
    }

    /// Creates the evaluation of a condition.
    pub(super) fn of_guard(scope: &'s Scope) -> Self {
        Self { in_guard: true, ..Self::new(scope) }
    }

    pub(super) fn eval(&mut self, expr: &Expr) -> Result<Data, EvalError> {
        self.fuel.burn(1)?;
        match expr {
            Expr::Const(value) => Ok(value.clone()),
            Expr::Path(root, keys) => self.path(root, keys),
            Expr::Get(base, keys) => self.get(base, keys),
            Expr::Slice(slice) => self.slice(slice),
            Expr::Not(operand) => Ok(Data::from(!self.eval(operand)?.is_true())),
            Expr::Negate(operand) => ops::negate(&self.eval(operand)?),
            Expr::And(left, right) => match self.eval(left)? {
                value if value.is_true() => self.eval(right),
                value => Ok(value),
            },
            Expr::Or(left, right) => match self.eval(left)? {
                value if value.is_true() => Ok(value),
                _ => self.eval(right),
            },
            Expr::Arithmetic(node) => self.arithmetic(node),
            Expr::Compare(first, rest) => self.compare(first, rest),
            Expr::If(branches) => self.choose(branches),
            Expr::Filter(node) => self.application(node),
            Expr::Test(node) => self.test(node),
            Expr::Call(node) => self.call(node),
            Expr::Method(node) => self.method(node),
            Expr::List(items) => self.list(items),
            Expr::Map(entries) => self.map(entries),
        }
    }

    // The evaluation recurses through `eval`. Each kind of node has its own function, so that a
    // level of the recursion uses only the stack it needs.

    fn get(&mut self, base: &Expr, keys: &[PathKey]) -> Result<Data, EvalError> {
        let view = View::Plain(self.eval(base)?);
        self.walk(view, keys)
    }

    fn arithmetic(&mut self, node: &Arithmetic) -> Result<Data, EvalError> {
        let left = self.eval(&node.left)?;
        let right = self.eval(&node.right)?;
        ops::arithmetic(node.operator, &left, &right, &node.text, &mut self.fuel)
    }

    fn application(&mut self, node: &Application) -> Result<Data, EvalError> {
        let arguments = self.arguments(Some(&node.input), &node.arguments)?;
        self.apply(&node.filter, &arguments)
    }

    fn test(&mut self, node: &Application) -> Result<Data, EvalError> {
        self.application(node).map(|answer| Data::from(answer.is_true()))
    }

    fn call(&mut self, node: &(Function, Arguments)) -> Result<Data, EvalError> {
        let arguments = self.arguments(None, &node.1)?;
        for argument in &arguments {
            self.fuel.burn_for(argument)?;
        }
        function::call(self, &node.0, &arguments)
    }

    fn method(&mut self, node: &Method) -> Result<Data, EvalError> {
        let target = self.eval(&node.target)?;
        let arguments = self.arguments(None, &node.arguments)?;
        method::call(self, &target, &node.name, &arguments)
    }

    /// Calls a filter or a test. The first argument is its input.
    pub(super) fn apply(&mut self, filter: &Filter, arguments: &[Data]) -> Result<Data, EvalError> {
        if let Some(items) = listed::items_for(filter.name, arguments) {
            let listed: Vec<Data> =
                std::iter::once(items).chain(arguments[1..].iter().cloned()).collect();
            return self.apply(filter, &listed);
        }
        for argument in arguments {
            self.charge(filter.cost, argument)?;
        }
        if filter.cost == Cost::Higher {
            return higher::call(self, filter.name, arguments);
        }
        let state = self.state.get_or_insert_with(library::state);
        let value = filter.callable.call(state, arguments).map_err(|error| {
            let EvalError(reason) = error.into();
            match arguments.first() {
                Some(input) => {
                    EvalError(format!("{}: {reason} (given {})", filter.name, show(input)))
                }
                None => EvalError(format!("{}: {reason}", filter.name)),
            }
        })?;
        let value = self.settle(value)?;
        self.fuel.burn_for(&value)?;
        Ok(value)
    }

    fn charge(&mut self, cost: Cost, argument: &Data) -> Result<(), EvalError> {
        /// Approximate cost of compiling a small pattern.
        const PATTERN_COST: usize = 200;
        /// Bytes of text per unit of fuel. A parsed value is several times larger than its text.
        const PARSED_BYTES_PER_FUEL: usize = 8;
        let text = argument.as_str().map_or(0, str::len);
        match cost {
            Cost::Read | Cost::Higher => {}
            Cost::TakeApart => {
                self.fuel.burn(text)?;
                return self.fuel.burn_deep(argument);
            }
            Cost::Parse => self.fuel.burn(text / PARSED_BYTES_PER_FUEL)?,
            Cost::Pattern => self.fuel.burn(PATTERN_COST)?,
        }
        self.fuel.burn_for(argument)
    }

    /// Converts a lazy sequence to a list.
    ///
    /// Otherwise, deferred work of a filter would escape the budget, and lazy sequences nested by a
    /// loop would overflow the stack when read.
    pub(super) fn settle(&mut self, value: Data) -> Result<Data, EvalError> {
        match value.kind() {
            ValueKind::Iterable => {
                let mut items = Vec::new();
                for item in value.try_iter()?.checked() {
                    self.fuel.burn(1)?;
                    items.push(item?);
                    check_items(Some(items.len()))?;
                }
                Ok(Data::from(items))
            }
            ValueKind::Invalid => Err(EvalError::new(value.to_string())),
            _ => Ok(value),
        }
    }

    fn path(&mut self, root: &PathRoot, keys: &[PathKey]) -> Result<Data, EvalError> {
        let local = match root {
            PathRoot::Name(name) if !self.locals.is_empty() => self.local(name),
            _ => None,
        };
        let view = match local {
            Some(value) => View::Plain(value),
            None => View::root(root, self.scope),
        };
        self.walk(view, keys)
    }

    /// Returns a value bound by the template itself.
    pub(super) fn local(&self, name: &str) -> Option<Data> {
        let bound = self.locals.iter().rev().find(|(bound, _)| **bound == *name);
        bound.map(|(_, value)| value.clone())
    }

    fn walk(&mut self, mut view: View<'s>, keys: &[PathKey]) -> Result<Data, EvalError> {
        for key in keys {
            view = match key {
                PathKey::Name(name) => view.get(name, self.scope),
                PathKey::Computed(expr) => {
                    let key = self.eval(expr)?;
                    if let View::Plain(data) = &view
                        && data.as_str().is_some()
                    {
                        self.fuel.burn_for(data)?;
                    }
                    view.get_computed(&key, self.scope)
                }
            };
        }
        Ok(view.into_data(self.scope))
    }

    fn choose(&mut self, branches: &(Expr, Expr, Option<Expr>)) -> Result<Data, EvalError> {
        let (condition, then, otherwise) = branches;
        if self.eval(condition)?.is_true() {
            return self.eval(then);
        }
        match otherwise {
            Some(otherwise) => self.eval(otherwise),
            None => Ok(Data::UNDEFINED),
        }
    }

    fn compare(&mut self, first: &Expr, rest: &[(Comparison, Expr)]) -> Result<Data, EvalError> {
        let mut left = self.eval(first)?;
        for (comparison, right) in rest {
            let right = self.eval(right)?;
            // A key is looked up in a map; all other comparisons visit the whole value.
            if right.kind() != ValueKind::Map || left.kind() == ValueKind::Map {
                self.fuel.burn_deep(&left)?;
                self.fuel.burn_deep(&right)?;
            }
            let is_absent = left.is_undefined() || right.is_undefined();
            // In a condition, an ordering with an undefined value is false; in other templates, it
            // is an error.
            let holds = !(self.in_guard && is_absent && comparison.is_ordering())
                && ops::compare(*comparison, &left, &right)?;
            if !holds {
                return Ok(Data::from(false));
            }
            left = right;
        }
        Ok(Data::from(true))
    }

    fn slice(&mut self, slice: &Slice) -> Result<Data, EvalError> {
        let of = self.eval(&slice.of)?;
        let of = listed::items(&of).unwrap_or(of);
        let start = self.bound(slice.start.as_ref())?;
        let stop = self.bound(slice.stop.as_ref())?;
        let step = self.bound(slice.step.as_ref())?.unwrap_or(1);
        self.charge(Cost::TakeApart, &of)?;
        let items: Vec<Data> = match of.kind() {
            ValueKind::Undefined | ValueKind::None => Vec::new(),
            ValueKind::String | ValueKind::Seq | ValueKind::Iterable => of.try_iter()?.collect(),
            kind => {
                return Err(EvalError::new(format!("cannot slice {} ({kind})", show(&of))));
            }
        };
        let selected = places(items.len(), start, stop, step)?
            .into_iter()
            .filter_map(|place| items.get(place).cloned());
        if of.kind() == ValueKind::String {
            let text: String = selected.filter_map(|c| c.as_str().map(str::to_owned)).collect();
            return Ok(Data::from(text));
        }
        Ok(selected.collect::<Vec<_>>().into())
    }

    fn bound(&mut self, expr: Option<&Expr>) -> Result<Option<i64>, EvalError> {
        let Some(expr) = expr else { return Ok(None) };
        let value = self.eval(expr)?;
        if value.is_none() || value.is_undefined() {
            return Ok(None);
        }
        match value.as_i64() {
            Some(bound) if value.is_integer() => Ok(Some(bound)),
            _ => Err(EvalError::new(format!("cannot slice by {}", show(&value)))),
        }
    }

    fn list(&mut self, items: &[Expr]) -> Result<Data, EvalError> {
        let mut list = Vec::with_capacity(items.len());
        for item in items {
            list.push(self.eval(item)?);
        }
        Ok(Data::from(list))
    }

    fn map(&mut self, entries: &[(Expr, Expr)]) -> Result<Data, EvalError> {
        let mut map = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            map.push((self.eval(key)?, self.eval(value)?));
        }
        Ok(Data::from_pairs(map))
    }

    fn arguments(
        &mut self,
        input: Option<&Expr>,
        arguments: &Arguments,
    ) -> Result<Vec<Data>, EvalError> {
        let mut values = Vec::with_capacity(2 + arguments.positional.len());
        for expr in input.into_iter().chain(&arguments.positional) {
            values.push(self.eval(expr)?);
        }
        if !arguments.named.is_empty() {
            let mut named = Vec::with_capacity(arguments.named.len());
            for (name, expr) in &arguments.named {
                named.push((&**name, self.eval(expr)?));
            }
            values.push(Data::from(named.into_iter().collect::<Kwargs>()));
        }
        Ok(values)
    }
}

/// Returns the indexes that a slice selects, with Python semantics.
fn places(
    length: usize,
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
) -> Result<Vec<usize>, EvalError> {
    if step == 0 {
        return Err(EvalError::new("cannot slice by a step of 0"));
    }
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let (lowest, highest) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let clamp = |bound: i64| {
        let bound = if bound < 0 { bound.saturating_add(length) } else { bound };
        bound.clamp(lowest, highest)
    };
    let (first, last) = if step > 0 { (lowest, highest) } else { (highest, lowest) };
    let mut place = start.map_or(first, clamp);
    let stop = stop.map_or(last, clamp);
    let mut places = Vec::new();
    while if step > 0 { place < stop } else { place > stop } {
        places.extend(usize::try_from(place));
        place = place.saturating_add(step);
    }
    Ok(places)
}
