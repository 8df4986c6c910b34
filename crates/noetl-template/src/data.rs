//! Values as templates see them.

use minijinja::value::ValueKind;

/// A value as templates see it. Shared, so that reading a result never copies it.
pub type Data = minijinja::Value;

/// Returns the value of a map's key. A present key is found even if its value is null.
pub(super) fn field(data: &Data, key: &str) -> Option<Data> {
    data.as_object()?.get_value_by_str(key)
}

/// Texts that count as false in a condition.
const FALSE_WORDS: [&str; 6] = ["false", "no", "off", "none", "null", "0"];

/// Returns `true` if a value counts as true in a condition.
///
/// False values are false, zero, undefined, null, and the empty text, list, and map. Text that
/// spells a false value, in any case, is also false: authors compare rendered flags such as
/// `"false"`.
pub fn truthy(value: &Data) -> bool {
    match value.kind() {
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default().trim();
            let means_no = FALSE_WORDS.iter().any(|word| text.eq_ignore_ascii_case(word));
            !text.is_empty() && !means_no
        }
        _ => value.is_true(),
    }
}
