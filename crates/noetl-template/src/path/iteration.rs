//! Names of a loop iteration, and of the current pipeline task.

use super::View;
use crate::data::Data;
use crate::scope::{Iteration, Scope};
use crate::value_ref::ValueSlot;

/// Returns `true` if `iter` refers to the iteration and not to a name defined by the author.
pub(super) fn is_inside(scope: &Scope) -> bool {
    scope.iteration.is_some() || scope.task.is_some()
}

/// Returns the value that the iteration binds to a name without prefix: a variable it set, or its
/// item.
pub(super) fn bound<'s>(name: &str, scope: &'s Scope) -> Option<&'s ValueSlot> {
    let set = scope.task.as_ref().and_then(|task| task.iter.get(name));
    let iteration = scope.iteration.as_ref();
    set.or_else(|| iteration?.vars.get(name))
        .or_else(|| iteration.filter(|of| *of.name == *name).map(|of| &of.item))
}

/// Looks up a key of `iter`.
pub(super) fn field(key: &str, scope: &Scope) -> Option<Data> {
    if let Some(slot) = bound(key, scope) {
        return Some(scope.reach.data(slot));
    }
    let of = scope.iteration.as_ref()?;
    match key {
        "_index" | "index" => Some(Data::from(of.index)),
        "_total" | "total" => of.total.map(Data::from),
        "_first" | "first" => Some(Data::from(of.index == 0)),
        "_last" | "last" => of.total.map(|total| Data::from(is_last(of, total))),
        _ => None,
    }
}

/// Returns `iter` as a whole: variables, the item, and its position.
pub(super) fn whole(scope: &Scope) -> Data {
    let task = scope.task.as_ref().map(|task| &task.iter);
    let iteration = scope.iteration.as_ref();
    let names = iteration.map(|of| &of.name).into_iter();
    let names = names.chain(iteration.into_iter().flat_map(|of| of.vars.keys()));
    let names = names.chain(task.into_iter().flat_map(|set| set.keys()));
    let named = names.map(|name| &**name).chain(["_index", "_total", "_first", "_last"]);
    let pairs = named.filter_map(|name| Some((name.to_owned(), field(name, scope)?)));
    Data::from_pairs(pairs.collect::<Vec<_>>())
}

/// Returns a built-in name of an iteration or task. Names defined by authors take precedence.
pub(super) fn global<'s>(name: &str, scope: &'s Scope) -> Option<View<'s>> {
    let plain = |value: Data| Some(View::Plain(value));
    match name {
        "_index" | "loop_index" => plain(Data::from(scope.iteration.as_ref()?.index)),
        "_total" => plain(Data::from(scope.iteration.as_ref()?.total?)),
        "loop" => plain(place(scope.iteration.as_ref()?)),
        "_task" => plain(Data::from(scope.task.as_ref()?.label.clone())),
        "_attempt" => plain(Data::from(scope.task.as_ref()?.attempt)),
        "_prev" => Some(View::Result(scope.task.as_ref()?.previous.clone()?, None)),
        "results" => scope.task.as_ref().map(|_| View::Labels),
        _ => None,
    }
}

/// Returns `loop`: the zero-based position of this iteration.
fn place(of: &Iteration) -> Data {
    let mut fields = vec![("index", Data::from(of.index)), ("first", Data::from(of.index == 0))];
    if let Some(total) = of.total {
        fields.push(("last", Data::from(is_last(of, total))));
        fields.push(("length", Data::from(total)));
    }
    Data::from_pairs(fields)
}

fn is_last(of: &Iteration, total: u32) -> bool {
    of.index.saturating_add(1) >= total
}
