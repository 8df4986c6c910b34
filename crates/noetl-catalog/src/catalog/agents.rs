//! Documents that declare themselves agents.

use noetl_model::Value;
use noetl_playbook::read_data;
use noetl_store::CatalogEntry;

/// Returns `true` if a document declares itself an agent with all of these capabilities.
pub(super) fn is_agent(entry: &CatalogEntry, capabilities: &[String]) -> bool {
    if !matches!(entry.kind.as_str(), "agent" | "playbook") {
        return false;
    }
    let document = read_data(&entry.content).unwrap_or_default();
    let metadata = &document["metadata"];
    let says_so = match &metadata["agent"] {
        Value::Bool(is) => *is,
        Value::Object(_) => true,
        _ => entry.kind == "agent",
    };
    let can = metadata["capabilities"].as_array();
    let has =
        |wanted: &String| can.is_some_and(|can| can.iter().any(|one| one.as_str() == Some(wanted)));
    says_so && capabilities.iter().all(has)
}
