//! Templates of strangers, rendered against data of strangers.

use std::sync::Arc;

use noetl_model::{Map, Value};
use noetl_template::{Guard, Names, Scope, Template, ValueTemplate, from_json_owned};
use serde_json::json;

/// Bytes a rendering may produce at most, with room for how JSON writes them.
const RENDERED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Compiles and renders a text, with the JSON object behind the first NUL as the workload.
///
/// The same template gives the same in the same scope, and never more than the limit.
pub fn template(data: &[u8]) {
    let (source, workload) = crate::halves::halves(data);
    let Ok(source) = std::str::from_utf8(source) else { return };
    let scope = scope(serde_json::from_slice(workload).unwrap_or_default());
    if let Ok(guard) = Guard::parse(source) {
        let _ = guard.holds(&scope);
    }
    let Ok(template) = Template::parse(source) else { return };
    assert_eq!(template.source(), source, "a template keeps its text");
    let _ = (template.names(), template.mentions(), template.is_expression());
    let drawn = scope.entropy.position();
    let once = template.render(&scope);
    scope.entropy.rewind(drawn);
    assert_eq!(once, template.render(&scope), "a template gives the same again");
    let _ = template.evaluate(&scope);
    if let Ok(Value::String(text)) = &once {
        assert!(text.len() <= RENDERED_BYTES_MAX, "{} bytes", text.len());
    }
    let nested = ValueTemplate::compile(json!([source, { source: [source] }]));
    if let Ok(nested) = nested {
        let _ = nested.render(&scope);
    }
}

fn scope(workload: Map) -> Scope {
    let names = |map: &Map| -> Arc<Names> {
        let slot = |value: &Value| from_json_owned(value.clone()).into();
        Arc::new(map.iter().map(|(key, value)| (Arc::from(key.as_str()), slot(value))).collect())
    };
    let names = names(&workload);
    Scope {
        ctx: Arc::clone(&names),
        results: Arc::clone(&names),
        workload: names,
        ..Scope::default()
    }
}
