//! Input form of a document: fields that users can fill in before they run it.

use serde::Serialize;
use serde_json::Value;

use super::context::Context;
use super::cursor::Cursor;
use super::{open, value};
use crate::diagnostic::Diagnostic;
use crate::yaml::{MapKey, NodeKind};

/// Form for the `workload` of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct UiSchema {
    /// Value of `metadata.name`, if present and not empty.
    pub title: Option<String>,
    /// Value of `metadata.description`, if present and not empty.
    pub description: Option<String>,
    /// Whether the author wants the document shown in the UI (`metadata.exposed_in_ui`).
    pub is_exposed: bool,
    /// Fields in document order, one per key of `workload`.
    pub fields: Vec<UiField>,
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UiField {
    pub name: String,
    /// `enum`, `boolean`, `integer`, `number`, `null`, `object`, `array`, or `string`.
    pub kind: &'static str,
    /// Value used if the field is left empty.
    pub default: Value,
    /// Description for users (`# ui:description=…`).
    pub description: Option<String>,
    /// Whether the UI hides the entered text (`# ui:secret`).
    pub secret: bool,
    /// Pattern of the credentials to choose from (`# ui:credential=glob`).
    pub credential_glob: Option<String>,
    /// Values to choose from (`# ui:enum=[a, b]`).
    pub options: Option<Vec<Value>>,
    /// Fields of an object. `None` for other kinds.
    pub children: Option<Vec<Self>>,
}

/// Builds the input form of a document.
///
/// # Errors
///
/// Returns the diagnostics if the document is not valid YAML, or if a default is not valid JSON.
pub fn ui_schema(text: &str) -> Result<UiSchema, Vec<Diagnostic>> {
    let (mut cx, root) = open(text);
    let schema = root.map(|root| read(&mut cx, &Cursor::root(&root)));
    schema.filter(|_| !cx.findings.has_errors()).ok_or_else(|| cx.findings.into_sorted())
}

fn read(cx: &mut Context<'_>, root: &Cursor<'_>) -> UiSchema {
    let metadata = root.get("metadata");
    let text = |name: &str| {
        let value =
            metadata.as_ref().and_then(|metadata| metadata.get(name)?.text().map(str::to_owned));
        value.filter(|value| !value.is_empty())
    };
    let exposed = metadata.as_ref().and_then(|metadata| metadata.get("exposed_in_ui"));
    let is_exposed = exposed.is_some_and(|value| matches!(value.node.kind, NodeKind::Bool(true)));
    let (title, description) = (text("name"), text("description"));
    let workload = root.get("workload");
    let fields = workload.iter().flat_map(|workload| workload.entries());
    let fields = fields
        .map(|(key, entry)| {
            let directives = Directives::from_line(cx.line(key.at.line), key);
            field(cx, key, &entry, directives)
        })
        .collect();
    UiSchema { title, description, is_exposed, fields }
}

fn field(cx: &mut Context<'_>, key: &MapKey, at: &Cursor<'_>, directives: Directives) -> UiField {
    let children = at.is_map().then(|| {
        at.entries().map(|(key, entry)| field(cx, key, &entry, Directives::default())).collect()
    });
    let kind = match &at.node.kind {
        _ if directives.options.is_some() => "enum",
        NodeKind::Null => "null",
        NodeKind::Bool(_) => "boolean",
        NodeKind::Int(_) | NodeKind::Large(_) => "integer",
        NodeKind::Float(_) => "number",
        NodeKind::Text(..) => "string",
        NodeKind::List(_) => "array",
        NodeKind::Map(_) => "object",
    };
    UiField {
        name: key.name.to_string(),
        kind,
        default: value::literal(cx, at),
        description: directives.description,
        secret: directives.secret,
        credential_glob: directives.credential_glob,
        options: directives.options,
        children,
    }
}

/// Directives in the comment at the end of a key's line.
#[derive(Debug, Default, PartialEq)]
struct Directives {
    secret: bool,
    options: Option<Vec<Value>>,
    credential_glob: Option<String>,
    description: Option<String>,
}

impl Directives {
    /// Parses the directives of a key's line. Ignores a line that starts with another key.
    fn from_line(line: &str, key: &MapKey) -> Self {
        let begins = line.trim_start().trim_start_matches(['"', '\'']).starts_with(&*key.name);
        match comment(line).filter(|_| begins) {
            Some(comment) => Self::read(comment),
            None => Self::default(),
        }
    }

    fn read(comment: &str) -> Self {
        let mut directives = Self::default();
        let mut rest = comment;
        while let Some(at) = rest.find("ui:") {
            let is_word =
                rest[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || c == '#');
            rest = &rest[at + "ui:".len()..];
            if !is_word {
                continue;
            }
            // A description extends to the start of the next directive.
            let end = rest.find("# ui:").unwrap_or(rest.len());
            let word_end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            if let Some(text) = rest[..end].strip_prefix("description=") {
                let text = text.trim().trim_end_matches('#').trim().trim_matches('"');
                directives.description = (!text.is_empty()).then(|| text.to_owned());
                rest = &rest[end..];
            } else if let Some(list) = rest.strip_prefix("enum=[") {
                if let Some((items, after)) = list.split_once(']') {
                    directives.options = Some(items.split(',').filter_map(option).collect());
                    rest = after;
                }
            } else if let Some(glob) = rest[..word_end].strip_prefix("credential=") {
                directives.credential_glob = (!glob.is_empty()).then(|| glob.to_owned());
            } else if &rest[..word_end] == "secret" {
                directives.secret = true;
            }
        }
        directives
    }
}

/// Parses an item of a list in a comment: a number, `true`, `false`, or text with or without
/// quotes.
fn option(item: &str) -> Option<Value> {
    let item = item.trim();
    if item.is_empty() {
        return None;
    }
    let plain = serde_json::from_str(item).ok().filter(|value: &Value| !value.is_object());
    Some(plain.unwrap_or_else(|| Value::from(item.trim_matches(['"', '\'']))))
}

/// Returns the text after the `#` of a line's comment, if any. A comment starts with a `#` after
/// whitespace, outside quotes.
fn comment(line: &str) -> Option<&str> {
    let mut quote: Option<char> = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open && before != '\\' => quote = None,
            Some(_) => {}
            // Within a plain word, a quote is an ordinary character.
            None if matches!(c, '"' | '\'')
                && matches!(before, ' ' | '\t' | '[' | '{' | ',' | ':') =>
            {
                quote = Some(c);
            }
            None if c == '#' && before.is_whitespace() => return Some(&line[at + 1..]),
            None => {}
        }
        before = c;
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FORM: &str = "\
kind: Playbook
metadata:
  name: form
  path: tests/form
  description: Fill **in**.
  exposed_in_ui: true
workload:
  token: ''  # ui:secret # ui:description=From the # 1 provider, it's yours
  size: small # ui:enum=[small, 2, \"very large\"]
  db: \"pg # no comment\"  # ui:credential=pg_*
  count: 3
  rate: 1.5
  on: true
  nothing:
  many: [1, 2]
  it's: a # b
  nested: # ui:description=All of it
    deep: x # ui:secret
";

    #[test]
    fn every_key_of_the_workload_is_a_field_in_its_order() {
        let schema = ui_schema(FORM).expect("a form");
        assert_eq!((schema.title.as_deref(), schema.is_exposed), (Some("form"), true));
        assert_eq!(schema.description.as_deref(), Some("Fill **in**."));
        let kinds: Vec<_> = schema.fields.iter().map(|field| (&*field.name, field.kind)).collect();
        let expected = [
            ("token", "string"),
            ("size", "enum"),
            ("db", "string"),
            ("count", "integer"),
            ("rate", "number"),
            ("on", "boolean"),
            ("nothing", "null"),
            ("many", "array"),
            ("it's", "string"),
            ("nested", "object"),
        ];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn comments_on_the_line_of_a_key_configure_its_field() {
        let fields = ui_schema(FORM).expect("a form").fields;
        assert!(fields[0].secret);
        let directives = fields[0].description.as_deref();
        assert_eq!(directives, Some("From the # 1 provider, it's yours"));
        assert_eq!(fields[1].options, Some(vec![json!("small"), json!(2), json!("very large")]));
        assert_eq!((&fields[1].default, fields[1].secret), (&json!("small"), false));
        assert_eq!(fields[2].credential_glob.as_deref(), Some("pg_*"));
        assert_eq!(fields[2].default, "pg # no comment");
        assert_eq!(fields[8].default, "a");
        let nested = &fields[9];
        assert_eq!(nested.description.as_deref(), Some("All of it"));
        let children = nested.children.as_deref().expect("children");
        assert_eq!((&*children[0].name, children[0].secret), ("deep", false), "direct keys only");
    }

    #[test]
    fn a_document_without_input_has_no_fields_and_invalid_yaml_is_an_error() {
        for text in ["metadata: {name: a}", "metadata: {name: a}\nworkload: text", "kind: Mcp"] {
            assert_eq!(ui_schema(text).expect("a form").fields, [], "{text}");
        }
        assert!(ui_schema("a: [1").is_err());
    }

    #[test]
    fn keys_on_the_same_line_do_not_share_directives() {
        let text = "metadata: {name: a}\nworkload: {a: 1, b: 2} # ui:secret\n";
        let fields = ui_schema(text).expect("a form").fields;
        assert!(fields.iter().all(|field| !field.secret), "{fields:?}");
    }
}
