//! Parser of the `tracestate` header.

use std::collections::HashSet;

/// Maximum number of list members.
const MEMBERS_MAX: usize = 32;
/// Maximum length of a propagated list in characters. The recommendation requires at least this
/// much.
const LENGTH_MAX: usize = 512;
/// Length in characters above which members are removed first if the list is too long.
const LONG_MEMBER: usize = 128;
/// Maximum length of a key and of a value.
const PART_MAX: usize = 256;

/// Returns the list in the form to propagate, or `None` if it is empty or violates the
/// recommendation.
pub(super) fn read(text: &str) -> Option<String> {
    let trimmed = text.split(',').map(|member| member.trim_matches([' ', '\t']));
    let mut members: Vec<&str> = trimmed.filter(|member| !member.is_empty()).collect();
    let mut keys = HashSet::new();
    let is_sound = members.len() <= MEMBERS_MAX
        && members.iter().all(|member| {
            member
                .split_once('=')
                .is_some_and(|(key, value)| is_key(key) && is_value(value) && keys.insert(key))
        });
    if !is_sound {
        return None;
    }
    let length = |members: &[&str]| members.iter().map(|member| member.len() + 1).sum::<usize>();
    if length(&members) > LENGTH_MAX {
        members.retain(|member| member.len() <= LONG_MEMBER);
    }
    while length(&members) > LENGTH_MAX {
        members.pop();
    }
    (!members.is_empty()).then(|| members.join(","))
}

fn is_key(key: &str) -> bool {
    let is_first = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_later = |byte| is_first(byte) || b"_-*/@".contains(&byte);
    let first = key.bytes().next();
    first.is_some_and(is_first) && key.bytes().all(is_later) && key.len() <= PART_MAX
}

fn is_value(value: &str) -> bool {
    let is_allowed = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'=';
    !value.is_empty() && value.len() <= PART_MAX && value.bytes().all(is_allowed)
}
