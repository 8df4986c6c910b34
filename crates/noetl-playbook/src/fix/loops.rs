//! Rewrites older keys of loops.

use super::Fixer;
use super::edits::Edit;
use super::tree::FixNode;

/// Settings that used to be beside `in`, and their names under `spec`.
const BESIDE: &[(&str, &str)] =
    &[("mode", "mode"), ("concurrency", "max_in_flight"), ("max_in_flight", "max_in_flight")];

pub(super) fn rewrite(fixer: &mut Fixer<'_>, at: &FixNode) {
    for name in ["items", "collection"] {
        fixer.rename(at, name, "in");
    }
    fixer.rename(at, "element", "iterator");
    settings(fixer, at);
    for name in ["collect", "enumerate"] {
        if let (Some((key, _)), Some(edits)) = (at.entry(name), fixer.remove(at, name)) {
            fixer.push(key.start, format!("removed '{name}', which has no effect"), edits);
        }
    }
}

/// Moves `mode` and `concurrency` to `spec: {mode: …, max_in_flight: …}`, at the position of the
/// first.
fn settings(fixer: &mut Fixer<'_>, at: &FixNode) {
    if at.has("spec") {
        return;
    }
    let known = |key: &FixNode| BESIDE.iter().find(|(older, _)| key.text() == Some(older));
    let mut entries: Vec<_> =
        at.entries().iter().filter_map(|(key, value)| Some((known(key)?, key, value))).collect();
    if entries.is_empty() || entries.iter().any(|(_, _, value)| value.text().is_none()) {
        return;
    }
    let inner: Vec<String> = entries
        .iter()
        .map(|((_, name), _, value)| format!("{name}: {}", fixer.written(value)))
        .collect();
    let (_, key, value) = entries.remove(0);
    let spec = format!("spec: {{{}}}", inner.join(", "));
    let mut edits = vec![Edit::replace(key.start..value.end, spec)];
    for ((older, _), _, _) in entries {
        let Some(removal) = fixer.remove(at, older) else { return };
        edits.extend(removal);
    }
    fixer.push(key.start, "put the loop's settings under 'spec'", edits);
}
