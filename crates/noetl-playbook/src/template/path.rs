//! Names and the keys that follow them.
//!
//! A path is walked through views, because a step's result and a step's output answer to more
//! keys than their data has. A view exists only during the walk: what a path ends at is plain
//! data, so a result used as a whole is exactly what the tool returned.

use std::sync::Arc;

use minijinja::value::ValueKind;
use noetl_model::Failure;

use super::json::from_json;
use super::object::SharedNames;
use super::program::Root;
use super::scope::{Output, Scope};
use super::slot::Slot;
use super::{Data, Names};

/// Where a walk has arrived.
pub(super) enum View<'s> {
    /// Data, with its own keys only.
    Plain(Data),
    /// A step's result.
    Result(Slot),
    /// An HTTP response that answers for its body too.
    Response(Data),
    /// A scope's names.
    Names(&'s Arc<Names>),
    /// `ctx`: durable variables, then the workload for keys that were never set.
    Ctx,
    /// `steps`: results by step name.
    Steps,
    /// `output`: the completed step's envelope.
    Output(&'s Output),
    /// `event`.
    Event(&'static str),
    /// `env`.
    Env,
    /// `job`, an alias of the execution's identity.
    Job,
}

impl<'s> View<'s> {
    /// Where a path starts. Names a template binds itself are looked up before this.
    pub(super) fn root(root: &Root, scope: &'s Scope) -> Self {
        match root {
            Root::Workload => Self::Names(&scope.workload),
            Root::Ctx => Self::Ctx,
            Root::Step => Self::Names(&scope.step),
            Root::Steps => Self::Steps,
            Root::Output => match &scope.output {
                Some(output) => Self::Output(output),
                None => Self::unqualified("output", scope),
            },
            Root::Event => match scope.event {
                Some(event) => Self::Event(event),
                None => Self::unqualified("event", scope),
            },
            Root::Name(name) => Self::unqualified(name, scope),
        }
    }

    /// A name without a prefix: what the author wrote before what the engine offers.
    ///
    /// Iteration locals and pipeline labels, once there are any, come before `ctx`.
    fn unqualified(name: &str, scope: &'s Scope) -> Self {
        if let Some(value) = scope.ctx.get(name) {
            return Self::Plain(scope.reach.data(value));
        }
        if let Some(value) = scope.result(name) {
            return Self::Result(value.clone());
        }
        if let Some(value) = scope.workload.get(name) {
            return Self::Plain(scope.reach.data(value));
        }
        Self::global(name, scope)
    }

    fn global(name: &str, scope: &'s Scope) -> Self {
        let identity = &scope.identity;
        let value = match name {
            "result" => {
                let completed = scope.output.as_ref().map(|output| &output.data);
                return match completed.or(scope.previous.as_ref()) {
                    Some(data) => Self::Result(data.clone()),
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

    /// The view behind a key.
    pub(super) fn get(self, key: &str, scope: &'s Scope) -> Self {
        match self {
            Self::Plain(data) => Self::Plain(field(&data, key).unwrap_or(Data::UNDEFINED)),
            Self::Result(slot) => match slot.known_field(key) {
                Some(value) => Self::Plain(value),
                None => result_field(scope.reach.data(&slot), key),
            },
            Self::Response(data) => response_field(&data, key),
            Self::Names(names) => named(names.get(key), scope),
            Self::Ctx => named(scope.ctx.get(key).or_else(|| scope.workload.get(key)), scope),
            Self::Steps => match scope.result(key) {
                Some(data) => Self::Result(data.clone()),
                None => Self::Plain(Data::UNDEFINED),
            },
            Self::Output(output) => output_field(output, key, scope),
            Self::Event(event) => plain((key == "name").then(|| Data::from(event))),
            Self::Env => plain(scope.env.get(key).map(|value| Data::from(value.as_str()))),
            Self::Job => match key {
                "uuid" | "execution_id" => Self::global("execution_id", scope),
                _ => Self::Plain(Data::UNDEFINED),
            },
        }
    }

    /// The view behind a computed key.
    pub(super) fn get_computed(self, key: &Data, scope: &'s Scope) -> Self {
        match key.as_str() {
            Some(name) => self.get(name, scope),
            None => Self::Plain(item(&self.into_data(scope), key)),
        }
    }

    /// The data a path ends at.
    pub(super) fn into_data(self, scope: &Scope) -> Data {
        match self {
            Self::Plain(data) | Self::Response(data) => data,
            Self::Result(slot) => scope.reach.data(&slot),
            Self::Names(names) => shared(names, scope),
            Self::Ctx => shared(&scope.ctx, scope),
            Self::Steps => shared(&scope.results, scope),
            Self::Output(output) => scope.reach.data(&output.data),
            Self::Event(event) => Data::from_pairs([("name", event)]),
            Self::Env => Data::from_pairs(
                scope.env.iter().map(|(key, value)| (key.as_str(), value.as_str())),
            ),
            Self::Job => {
                let id = scope.identity.execution.to_string();
                Data::from_pairs([("uuid", id.clone()), ("execution_id", id)])
            }
        }
    }
}

/// A step's result: its own keys, then itself as `data` and `result`, then what its envelope says.
fn result_field(data: Data, key: &str) -> View<'static> {
    if let Some(value) = field(&data, key) {
        return View::Plain(value);
    }
    match key {
        "data" | "result" => View::Result(data.into()),
        "results" if data.kind() == ValueKind::Seq => View::Result(data.into()),
        "status" => View::Plain(Data::from("ok")),
        _ if is_response(&data) => response_field(&data, key),
        _ => View::Plain(Data::UNDEFINED),
    }
}

/// An HTTP response: its own keys, then those of the decoded body.
fn response_field(data: &Data, key: &str) -> View<'static> {
    plain(field(data, key).or_else(|| field(&field(data, "data")?, key)))
}

/// A step's output: the data's keys, then the data itself as `data`, then the envelope's keys.
///
/// `output.data` of an HTTP response is the response, not the key `data` within it: authors write
/// both `output.data.data.x` and `output.data.x` for a field of the body, and this reads both.
fn output_field<'s>(output: &'s Output, key: &str, scope: &Scope) -> View<'s> {
    // Which `data` is meant depends on the whole value.
    if key != "data"
        && let Some(value) = output.data.known_field(key)
    {
        return View::Plain(value);
    }
    let data = &scope.reach.data(&output.data);
    if key == "data" && is_response(data) {
        return View::Response(data.clone());
    }
    if let Some(value) = field(data, key) {
        return View::Plain(value);
    }
    let failure = output.failure.as_deref();
    match key {
        "data" | "result" => View::Result(data.clone().into()),
        "status" => View::Plain(Data::from(if failure.is_some() { "error" } else { "ok" })),
        "ok" => View::Plain(Data::from(failure.is_none())),
        "error" => plain(failure.map(error_data)),
        "http" => plain(http_data(data, failure)),
        _ if is_response(data) => response_field(data, key),
        _ => View::Plain(Data::UNDEFINED),
    }
}

/// A failure as templates see it; what the tool knows beyond its sentence fills the other keys.
fn error_data(failure: &Failure) -> Data {
    let mut fields: Vec<(String, Data)> = vec![
        ("kind".to_owned(), Data::from(failure.kind.to_string())),
        ("message".to_owned(), Data::from(failure.message.as_str())),
        ("retryable".to_owned(), Data::from(failure.retryable)),
    ];
    if let Some(serde_json::Value::Object(details)) = failure.details.as_deref() {
        for (key, value) in details {
            if !matches!(key.as_str(), "kind" | "message" | "retryable") {
                fields.push((key.clone(), from_json(value)));
            }
        }
    }
    Data::from_pairs(fields)
}

/// `output.http`: the status and headers of a response, whether the step failed over it or not.
fn http_data(data: &Data, failure: Option<&Failure>) -> Option<Data> {
    let details = failure.and_then(|failure| failure.details.as_ref());
    if let Some(http) = details.and_then(|details| details.get("http")) {
        return Some(from_json(http));
    }
    is_response(data).then(|| {
        let part = |key| field(data, key).unwrap_or(Data::UNDEFINED);
        Data::from_pairs([("status", part("status_code")), ("headers", part("headers"))])
    })
}

/// Whether data looks like what the `http` tool returns.
fn is_response(data: &Data) -> bool {
    data.kind() == ValueKind::Map
        && ["status_code", "headers", "data"].iter().all(|key| field(data, key).is_some())
}

/// A map's value; a key that is there is found even when its value is null.
fn field(data: &Data, key: &str) -> Option<Data> {
    data.as_object()?.get_value_by_str(key)
}

/// An item by any key: a place in a list or text, from the end when negative, or a map's key.
pub(super) fn item(data: &Data, key: &Data) -> Data {
    let found = match data.kind() {
        ValueKind::Seq | ValueKind::Iterable | ValueKind::String => {
            let length = data.len().unwrap_or(0);
            place(key, length).and_then(|place| match data.as_str() {
                Some(text) => text.chars().nth(place).map(|c| Data::from(c.to_string())),
                None => data.get_item_by_index(place).ok(),
            })
        }
        _ => data.as_object().and_then(|map| map.get_value(key)),
    };
    found.unwrap_or(Data::UNDEFINED)
}

fn place(key: &Data, length: usize) -> Option<usize> {
    if !key.is_integer() {
        return None;
    }
    let index = key.as_i64()?;
    match usize::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

fn plain(value: Option<Data>) -> View<'static> {
    View::Plain(value.unwrap_or(Data::UNDEFINED))
}

fn named(slot: Option<&Slot>, scope: &Scope) -> View<'static> {
    plain(slot.map(|slot| scope.reach.data(slot)))
}

fn shared(names: &Arc<Names>, scope: &Scope) -> Data {
    Data::from_object(SharedNames { names: Arc::clone(names), reach: scope.reach.clone() })
}
