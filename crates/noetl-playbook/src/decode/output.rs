//! `output`: how a result is shaped and stored.

use super::context::Context;
use super::cursor::Cursor;

/// Refuses projections, because steps after it would read another shape than their author wrote
/// them for; mentions that storage hints have no effect.
pub(super) fn check(cx: &mut Context<'_>, name: &str, at: &Cursor<'_>) {
    let projects =
        name == "output_select" || at.key("select").is_some() || at.key("output_select").is_some();
    if projects {
        let help = "select what is needed where it is used: \"{{ step.field }}\"";
        cx.unsupported(at.place(), "selecting parts of a result is", help);
    } else {
        let help = "remove it; results are kept whole";
        cx.warning("W114", at, format!("'{name}' has no effect in this version"), help);
    }
}
