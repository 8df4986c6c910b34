//! The operations of the OpenAPI document, with what they take.

use std::collections::BTreeSet;
use std::fmt;

use reqwest::Method;
use serde_json::Value;

/// The document.
pub(super) struct OpenApi(pub(super) Value);

/// An operation of the OpenAPI document.
pub(super) struct Operation {
    pub(super) verb: Method,
    pub(super) path: String,
    /// The parts of its path that have names.
    pub(super) path_names: Vec<String>,
    /// Names of the query parameters.
    pub(super) query_names: Vec<String>,
    /// Names of the required query parameters.
    pub(super) query_required: Vec<String>,
    pub(super) body: Option<Body>,
    /// Whether only the internal token opens it.
    pub(super) is_internal: bool,
    /// The statuses the document names.
    pub(super) statuses: Vec<u16>,
}

/// Contents of a body.
pub(super) enum Body {
    /// Bytes of any kind.
    Raw,
    /// JSON that is no object.
    Other,
    /// An object with these fields.
    Fields(Vec<Field>),
}

/// A field of a body.
#[derive(Clone)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) is_required: bool,
    /// The types of JSON it may have; any when there are none.
    pub(super) types: BTreeSet<String>,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.path)
    }
}

impl OpenApi {
    /// Returns the number of operations.
    pub(super) fn count(&self) -> usize {
        self.all().count()
    }

    /// Returns the operations of a group.
    pub(super) fn operations(&self, tag: &str) -> Vec<Operation> {
        let of_group = self.all().filter(|(_, _, operation)| operation["tags"][0] == tag);
        of_group.map(|(path, verb, operation)| self.read(path, verb, operation)).collect()
    }

    fn all(&self) -> impl Iterator<Item = (&str, &str, &Value)> {
        let paths = self.0["paths"].as_object().into_iter().flatten();
        paths.flat_map(|(path, item)| {
            let verbs = item.as_object().into_iter().flatten();
            verbs.map(|(verb, operation)| (path.as_str(), verb.as_str(), operation))
        })
    }

    fn read(&self, path: &str, verb: &str, operation: &Value) -> Operation {
        let all = || operation["parameters"].as_array().into_iter().flatten();
        let name = |one: &Value| one["name"].as_str().unwrap_or_default().to_owned();
        let named = |place: &str| all().filter(|one| one["in"] == place).map(name).collect();
        let required = all().filter(|one| one["in"] == "query" && one["required"] == true);
        let roles = operation["x-roles"].as_array().into_iter().flatten();
        let statuses = operation["responses"].as_object().into_iter().flatten();
        let content = operation["requestBody"]["content"].as_object();
        Operation {
            verb: verb.to_uppercase().parse().expect("a verb"),
            path: path.to_owned(),
            path_names: named("path"),
            query_names: named("query"),
            query_required: required.map(name).collect(),
            body: content.map(|content| match content.get("application/json") {
                Some(json) => self.body(&json["schema"]),
                None => Body::Raw,
            }),
            is_internal: roles.filter_map(Value::as_str).eq(["internal"]),
            statuses: statuses.filter_map(|(status, _)| status.parse().ok()).collect(),
        }
    }

    fn body(&self, schema: &Value) -> Body {
        let mut fields = Vec::new();
        match self.collect(schema, &mut fields) {
            true => Body::Fields(fields),
            false => Body::Other,
        }
    }

    /// The fields of an object; whether it is one.
    fn collect(&self, schema: &Value, fields: &mut Vec<Field>) -> bool {
        let schema = self.resolved(schema);
        if let Some(parts) = schema["allOf"].as_array() {
            let mut is_object = false;
            for part in parts {
                is_object |= self.collect(part, fields);
            }
            return is_object;
        }
        if let Some(choices) = schema["oneOf"].as_array() {
            // The other one is nothing, or a shorter way to say the same.
            return choices.first().is_some_and(|first| self.collect(first, fields));
        }
        if schema["type"] != "object" {
            return false;
        }
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, of) in schema["properties"].as_object().into_iter().flatten() {
            let mut types = BTreeSet::new();
            let is_any = !self.types(of, &mut types);
            fields.push(Field {
                name: name.clone(),
                is_required: required.contains(&Value::from(name.as_str())),
                types: if is_any { BTreeSet::new() } else { types },
            });
        }
        true
    }

    /// The types a schema names; whether it names any.
    fn types(&self, schema: &Value, types: &mut BTreeSet<String>) -> bool {
        let schema = self.resolved(schema);
        if let Some(choices) = schema["oneOf"].as_array() {
            let mut is_named = true;
            for choice in choices {
                is_named &= self.types(choice, types);
            }
            return is_named;
        }
        let named: Vec<&str> = match &schema["type"] {
            Value::String(one) => vec![one],
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
            _ => return false,
        };
        types.extend(named.into_iter().map(str::to_owned));
        true
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str().and_then(|name| name.strip_prefix('#')) {
            Some(pointer) => self.0.pointer(pointer).unwrap_or(schema),
            None => schema,
        }
    }
}
