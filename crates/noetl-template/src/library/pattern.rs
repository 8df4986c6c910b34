//! Filters that search: regular expressions and paths.

use minijinja::Error;
use minijinja::value::Kwargs;
use regex::{Regex, RegexBuilder};

use super::{Cost, Library, argument, fail};
use crate::data::Data;
use crate::json::text;
use crate::limit::{check_items, check_text};
use crate::listed::item;
use crate::ops::is_list;

/// Maximum size of a compiled pattern in bytes. Ample for hand-written patterns.
const PATTERN_BYTES_MAX: usize = 256 * 1024;

pub(super) fn register(library: &mut Library) {
    library.costly("regex_match", Cost::Pattern, |v: &Data, pattern: &str, named: Kwargs| {
        let pattern = compile(&format!("^(?:{pattern})"), &named)?;
        Ok::<_, Error>(pattern.is_match(&text(v)?))
    });
    library.costly("regex_search", Cost::Pattern, |v: &Data, pattern: &str, named: Kwargs| {
        Ok::<_, Error>(compile(pattern, &named)?.is_match(&text(v)?))
    });
    library.costly("regex_replace", Cost::Pattern, regex_replace);
    library.filter("json_query", json_query);
    library.filter("jmespath", json_query);
}

fn compile(pattern: &str, named: &Kwargs) -> Result<Regex, Error> {
    let ignorecase = argument(None, named, "ignorecase")?.unwrap_or(false);
    named.assert_all_used()?;
    RegexBuilder::new(pattern)
        .size_limit(PATTERN_BYTES_MAX)
        .dfa_size_limit(PATTERN_BYTES_MAX)
        .case_insensitive(ignorecase)
        .build()
        .or_else(|error| fail(format!("bad pattern: {error}")))
}

/// Replaces every match. Groups in the replacement are `\1` or `${name}`.
fn regex_replace(
    value: &Data,
    pattern: &str,
    replacement: &Data,
    named: Kwargs,
) -> Result<String, Error> {
    let pattern = compile(pattern, &named)?;
    let replacement = python_groups(&text(replacement)?);
    let value = text(value)?;
    let mut replaced = String::new();
    let mut done = 0;
    for captures in pattern.captures_iter(&value) {
        let Some(whole) = captures.get(0) else { continue };
        replaced.push_str(&value[done..whole.start()]);
        captures.expand(&replacement, &mut replaced);
        done = whole.end();
        check_text(Some(replaced.len()))?;
    }
    replaced.push_str(&value[done..]);
    check_text(Some(replaced.len()))?;
    Ok(replaced)
}

/// Converts Python's `\1` to `${1}`, the syntax of the regex crate.
fn python_groups(replacement: &str) -> String {
    let mut written = String::with_capacity(replacement.len());
    let mut chars = replacement.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek().copied()) {
            ('\\', Some(digit)) if digit.is_ascii_digit() => {
                chars.next();
                written.push_str("${");
                written.push(digit);
                written.push('}');
            }
            ('\\', Some('\\')) => {
                chars.next();
                written.push('\\');
            }
            _ => written.push(c),
        }
    }
    written
}

/// Follows a path of keys, indexes, and `[*]`: `rows[*].id`, `items[0].name`. Returns null if the
/// path does not exist.
fn json_query(value: &Data, path: &str) -> Result<Data, Error> {
    let result = follow(value.clone(), &steps(path)?)?;
    Ok(if result.is_undefined() { Data::from(()) } else { result })
}

enum PathStep {
    Key(Data),
    Each,
}

fn steps(path: &str) -> Result<Vec<PathStep>, Error> {
    let mut steps = Vec::new();
    for part in path.split('.').filter(|part| !part.is_empty() && *part != "$") {
        let (name, mut brackets) = match part.find('[') {
            Some(bracket) => part.split_at(bracket),
            None => (part, ""),
        };
        match name {
            "" | "$" | "@" => {}
            "*" => steps.push(PathStep::Each),
            name => steps.push(PathStep::Key(Data::from(name))),
        }
        while !brackets.is_empty() {
            let inner = brackets.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let Some((inside, rest)) = inner else {
                return fail(format!("`{path}` is not a path"));
            };
            steps.push(match (inside, inside.parse::<i64>()) {
                ("*" | "", _) => PathStep::Each,
                (_, Ok(place)) => PathStep::Key(Data::from(place)),
                (name, Err(_)) => PathStep::Key(Data::from(name.trim_matches(['\'', '"']))),
            });
            brackets = rest;
        }
    }
    check_items(Some(steps.len()))?;
    Ok(steps)
}

fn follow(mut value: Data, steps: &[PathStep]) -> Result<Data, Error> {
    for (place, step) in steps.iter().enumerate() {
        match step {
            PathStep::Key(key) => value = item(&value, key),
            PathStep::Each => {
                if !is_list(&value) {
                    return Ok(Data::UNDEFINED);
                }
                let mut items = Vec::new();
                for item in value.try_iter()?.checked() {
                    let item = follow(item?, &steps[place + 1..])?;
                    if !item.is_undefined() && !item.is_none() {
                        items.push(item);
                    }
                }
                return Ok(Data::from(items));
            }
        }
    }
    Ok(value)
}
