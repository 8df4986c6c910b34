//! Evaluation of names and the keys that follow them.
//!
//! A path is evaluated through views, because results and outputs support more keys than their data
//! has. A view exists only during the evaluation: a path yields plain data, so a result used as a
//! whole is exactly the value that the tool returned.

mod envelope;
mod iteration;

use std::sync::Arc;

use minijinja::value::ValueKind;

use super::data::{Data, field};
use super::keychain::{self, KeychainNames, Lookup};
use super::listed::{self, item};
use super::loaded::SharedNames;
use super::program::PathRoot;
use super::reference;
use super::scope::{Scope, StepOutput};
use super::value_ref::{Names, ValueSlot};

/// Current position in the evaluation of a path.
pub(super) enum View<'s> {
    /// Data, with its own keys only.
    Plain(Data),
    /// Result of a step or task, and the name of the step or task.
    Result(ValueSlot, Option<Arc<str>>),
    /// `results` of such a result: its data by label.
    Results(ValueSlot, Option<Arc<str>>),
    /// An HTTP response that also supports the keys of its body.
    Response(Data),
    /// A loop's result that acts as the list of its item results, and also has the result's keys.
    Listed(Data),
    Names(&'s Arc<Names>),
    /// `ctx`: durable variables, then the workload for keys that were never set.
    Ctx,
    /// `steps`: results by step name.
    Steps,
    /// `results` in a pipeline: results by label.
    Labels,
    /// `iter`: names of the iteration.
    Iter,
    /// `output`: the envelope of the completed step or task.
    Output(&'s StepOutput),
    /// `event`: its `name` only.
    Event(&'static str),
    /// `env`: permitted environment variables.
    Env,
    /// `keychain`: secrets by declared name.
    Keychain(&'s KeychainNames),
    Secret(Arc<str>, Data),
    /// `job`: an alias of the execution's identity.
    Job,
}

impl<'s> View<'s> {
    /// Returns the view at the start of a path. Names bound by the template itself are looked up
    /// earlier.
    pub(super) fn root(root: &PathRoot, scope: &'s Scope) -> Self {
        match root {
            PathRoot::Workload => Self::Names(&scope.workload),
            PathRoot::Ctx => Self::Ctx,
            PathRoot::Step => Self::Names(&scope.step),
            PathRoot::Steps => Self::Steps,
            PathRoot::Iter if iteration::is_inside(scope) => Self::Iter,
            PathRoot::Iter => Self::unqualified("iter", scope),
            PathRoot::Output => match &scope.output {
                Some(output) => Self::Output(output),
                None => Self::unqualified("output", scope),
            },
            PathRoot::Event => match scope.event {
                Some(event) => Self::Event(event),
                None => Self::unqualified("event", scope),
            },
            // Without a keychain, `keychain` is an ordinary name.
            PathRoot::Keychain => match &scope.keychain {
                Some(keychain) => Self::Keychain(keychain),
                None => Self::unqualified("keychain", scope),
            },
            PathRoot::Name(name) => Self::unqualified(name, scope),
        }
    }

    /// Resolves a name without prefix: names defined by the author, innermost first, then built-in
    /// names.
    fn unqualified(name: &str, scope: &'s Scope) -> Self {
        if let Some(value) = iteration::bound(name, scope) {
            return Self::Plain(scope.reach.data(value));
        }
        if let Some((label, value)) = scope.labels.get_key_value(name) {
            return Self::Result(value.clone(), Some(label.clone()));
        }
        if let Some(value) = scope.ctx.get(name) {
            return Self::Plain(scope.reach.data(value));
        }
        if let Some((step, value)) = scope.named_result(name) {
            return Self::Result(value.clone(), Some(step.clone()));
        }
        if let Some(value) = scope.workload.get(name) {
            return Self::Plain(scope.reach.data(value));
        }
        Self::global(name, scope)
    }

    fn global(name: &str, scope: &'s Scope) -> Self {
        if let Some(view) = iteration::global(name, scope) {
            return view;
        }
        let identity = &scope.identity;
        let value = match name {
            "result" => {
                let completed = scope.output.as_ref().map(|output| &output.data);
                return match completed.or(scope.previous.as_ref()) {
                    Some(data) => Self::Result(data.clone(), None),
                    None => Self::Plain(Data::UNDEFINED),
                };
            }
            "env" => return Self::Env,
            "job" => return Self::Job,
            "payload" | "input" => scope.payload.clone(),
            "spec" => scope.spec.clone(),
            "execution_id" => Some(Data::from(identity.execution.to_string())),
            "catalog_id" => Some(Data::from(identity.catalog.to_string())),
            "path" => Some(Data::from(Arc::clone(&identity.path))),
            "version" => Some(Data::from(identity.version)),
            "parent_execution_id" => {
                Some(identity.parent.map_or(Data::from(()), |id| Data::from(id.to_string())))
            }
            _ => None,
        };
        Self::Plain(value.unwrap_or(Data::UNDEFINED))
    }

    /// Returns the view behind a key.
    pub(super) fn get(self, key: &str, scope: &'s Scope) -> Self {
        match self {
            Self::Plain(data) => Self::Plain(field(&data, key).unwrap_or(Data::UNDEFINED)),
            Self::Result(slot, name) => result_field(slot, name, key, scope),
            Self::Results(slot, name) => labelled(slot, name, key, scope),
            Self::Response(data) => response_field(&data, key),
            Self::Listed(data) => plain(field(&data, key)),
            Self::Names(names) => named(names.get(key), scope),
            Self::Ctx => named(scope.ctx.get(key).or_else(|| scope.workload.get(key)), scope),
            Self::Steps => result_view(scope.named_result(key)),
            Self::Labels => result_view(scope.labels.get_key_value(key)),
            Self::Iter => plain(iteration::field(key, scope)),
            Self::Output(output) => envelope::output_field(output, key, scope),
            Self::Event(event) => plain((key == "name").then(|| Data::from(event))),
            Self::Env => plain(scope.env.get(key).map(|value| Data::from(value.as_str()))),
            Self::Keychain(keychain) => secret(keychain, key, scope),
            Self::Secret(name, fields) => match field(&fields, key) {
                Some(value) => Self::Plain(value),
                None => refused(keychain::no_field(&name, &fields, key), scope),
            },
            Self::Job => match key {
                "uuid" | "execution_id" => Self::global("execution_id", scope),
                _ => Self::Plain(Data::UNDEFINED),
            },
        }
    }

    /// Returns the view behind a computed key.
    pub(super) fn get_computed(self, key: &Data, scope: &'s Scope) -> Self {
        match key.as_str() {
            Some(name) => self.get(name, scope),
            None => Self::Plain(item(&self.into_data(scope), key)),
        }
    }

    /// Returns the data at the end of a path.
    pub(super) fn into_data(self, scope: &Scope) -> Data {
        match self {
            Self::Plain(data) | Self::Response(data) => data,
            Self::Listed(data) => listed::items(&data).unwrap_or(data),
            Self::Result(slot, _) | Self::Results(slot, _) => scope.reach.data(&slot),
            Self::Names(names) => shared(names, scope),
            Self::Ctx => shared(&scope.ctx, scope),
            Self::Steps => shared(&scope.results, scope),
            Self::Labels => shared(&scope.labels, scope),
            Self::Iter => iteration::whole(scope),
            Self::Output(output) if output.envelope_first => envelope::whole(output, scope),
            Self::Output(output) => scope.reach.data(&output.data),
            Self::Event(event) => Data::from_pairs([("name", event)]),
            Self::Env => Data::from_pairs(
                scope.env.iter().map(|(key, value)| (key.as_str(), value.as_str())),
            ),
            Self::Keychain(_) => {
                let why = "the keychain cannot be used as a whole; name an entry of it, as in \
                           'keychain.<name>.<field>'";
                refused(why.to_owned(), scope).into_data(scope)
            }
            Self::Secret(_, fields) => fields,
            Self::Job => {
                let id = scope.identity.execution.to_string();
                Data::from_pairs([("uuid", id.clone()), ("execution_id", id)])
            }
        }
    }
}

/// Looks up a key of a result: its own keys, then itself as `data`, `result`, and `results`, then
/// keys of its envelope, then itself under the label of the only task that ran.
fn result_field(
    slot: ValueSlot,
    name: Option<Arc<str>>,
    key: &str,
    scope: &Scope,
) -> View<'static> {
    if let Some(value) = slot.known_field(key) {
        return View::Plain(value);
    }
    if let Some(value) = reference::field(&slot, name.as_ref(), key, scope) {
        return View::Plain(value);
    }
    let data = scope.reach.data(&slot);
    if let Some(value) = field(&data, key) {
        return View::Plain(value);
    }
    match key {
        "data" | "result" if listed::is_loop(&data) => View::Listed(data),
        "data" | "result" => View::Result(slot, name),
        "results" => View::Results(slot, name),
        "status" => View::Plain(Data::from("ok")),
        _ => {
            let body = is_response(&data).then(|| field(&field(&data, "data")?, key)).flatten();
            match body {
                Some(value) => View::Plain(value),
                // A key with the name of the step itself does not count here: it more likely refers
                // to a missing field. `results` provides that access.
                None if first_task(name.as_ref(), scope).is_some_and(|label| {
                    **label == *key && Some(label) != name.as_ref() && !listed::is_loop(&data)
                }) =>
                {
                    View::Result(slot, name)
                }
                None => View::Plain(Data::UNDEFINED),
            }
        }
    }
}

/// Returns the result of the task with a label. After several tasks, the result is a map with every
/// label as a key, and the first task always runs. A missing label can therefore only be that of
/// the first task, and then no other task ran.
fn labelled(slot: ValueSlot, step: Option<Arc<str>>, key: &str, scope: &Scope) -> View<'static> {
    let is_label = first_task(step.as_ref(), scope).is_some_and(|label| **label == *key);
    match result_field(slot.clone(), step.clone(), key, scope) {
        View::Plain(data) if data.is_undefined() && is_label => View::Result(slot, step),
        view => view,
    }
}

/// Returns the label of a step's first task. A single tool has the name of its step as its label.
fn first_task<'s>(step: Option<&'s Arc<str>>, scope: &'s Scope) -> Option<&'s Arc<str>> {
    step.map(|step| scope.tasks.get(step).unwrap_or(step))
}

/// Looks up a keychain entry. If it is missing, the rendering must be discarded.
fn secret(keychain: &KeychainNames, name: &str, scope: &Scope) -> View<'static> {
    match keychain.find(name) {
        Lookup::Found(fields) => View::Secret(Arc::from(name), fields.clone()),
        Lookup::Wanted(name) => {
            scope.reach.want_secret(name);
            View::Plain(Data::UNDEFINED)
        }
        Lookup::Refused(why) => refused(why, scope),
    }
}

fn refused(why: String, scope: &Scope) -> View<'static> {
    scope.reach.refuse_secret(why);
    View::Plain(Data::UNDEFINED)
}

fn result_view(result: Option<(&Arc<str>, &ValueSlot)>) -> View<'static> {
    match result {
        Some((name, slot)) => View::Result(slot.clone(), Some(name.clone())),
        None => View::Plain(Data::UNDEFINED),
    }
}

/// Looks up a key of an HTTP response: its own keys, then those of the decoded body.
pub(super) fn response_field(data: &Data, key: &str) -> View<'static> {
    plain(field(data, key).or_else(|| field(&field(data, "data")?, key)))
}

/// Returns `true` if data has the form of an `http` tool's result.
pub(super) fn is_response(data: &Data) -> bool {
    data.kind() == ValueKind::Map
        && ["status_code", "headers", "data"].iter().all(|key| field(data, key).is_some())
}

fn plain(value: Option<Data>) -> View<'static> {
    View::Plain(value.unwrap_or(Data::UNDEFINED))
}

fn named(slot: Option<&ValueSlot>, scope: &Scope) -> View<'static> {
    plain(slot.map(|slot| scope.reach.data(slot)))
}

fn shared(names: &Arc<Names>, scope: &Scope) -> Data {
    Data::from_object(SharedNames { names: Arc::clone(names), reach: scope.reach.clone() })
}
