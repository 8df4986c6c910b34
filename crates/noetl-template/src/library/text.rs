//! Filters on text. Other values are converted to the text they render to.

use minijinja::value::{Kwargs, Rest, ValueOrKwargs};
use minijinja::{Error, State, filters};

use super::{Cost, Library, argument, fail};
use crate::data::Data;
use crate::json::text;
use crate::limit::{check_items, check_text};

pub(super) fn register(library: &mut Library) {
    library.filter("upper", |v: &Data| Ok::<_, Error>(text(v)?.to_uppercase()));
    library.filter("lower", |v: &Data| Ok::<_, Error>(text(v)?.to_lowercase()));
    library.filter("string", |v: &Data| Ok::<_, Error>(text(v)?.into_owned()));
    library.filter("safe", |v: Data| v);
    library.filter("title", |v: &Data| Ok::<_, Error>(title(&text(v)?)));
    library.filter("capitalize", |v: &Data| Ok::<_, Error>(capitalize(&text(v)?)));
    library.filter("trim", |v: &Data, chars: Option<String>| {
        let text = text(v)?;
        Ok::<_, Error>(match chars {
            Some(chars) => text.trim_matches(|c| chars.contains(c)).to_owned(),
            None => text.trim().to_owned(),
        })
    });
    library.filter("replace", replace);
    library.filter("split", split);
    library.filter("lines", |v: &Data| {
        let text = text(v)?;
        check_items(Some(text.lines().count()))?;
        Ok::<_, Error>(text.lines().map(Data::from).collect::<Vec<_>>())
    });
    library.filter("join", join);
    library.filter("indent", indent);
    library.filter("truncate", truncate);
    library.filter("format", format);
    library.filter("slugify", |v: &Data| Ok::<_, Error>(slugify(&text(v)?)));
    register_methods(library);
}

fn register_methods(library: &mut Library) {
    library.method("lstrip", Cost::Read, |v: &Data, chars: Option<String>| {
        let text = text(v)?;
        Ok::<_, Error>(match chars {
            Some(chars) => text.trim_start_matches(|c| chars.contains(c)).to_owned(),
            None => text.trim_start().to_owned(),
        })
    });
    library.method("rstrip", Cost::Read, |v: &Data, chars: Option<String>| {
        let text = text(v)?;
        Ok::<_, Error>(match chars {
            Some(chars) => text.trim_end_matches(|c| chars.contains(c)).to_owned(),
            None => text.trim_end().to_owned(),
        })
    });
    library.method("startswith", Cost::Read, |v: &str, prefix: &str| v.starts_with(prefix));
    library.method("endswith", Cost::Read, |v: &str, suffix: &str| v.ends_with(suffix));
    library.method("find", Cost::Read, |v: &str, part: &str| match v.find(part) {
        Some(offset) => i64::try_from(v[..offset].chars().count()).unwrap_or(i64::MAX),
        None => -1,
    });
    library.method("removeprefix", Cost::Read, |v: &str, prefix: &str| {
        v.strip_prefix(prefix).unwrap_or(v).to_owned()
    });
    library.method("removesuffix", Cost::Read, |v: &str, suffix: &str| {
        v.strip_suffix(suffix).unwrap_or(v).to_owned()
    });
    library.method("isdigit", Cost::Read, |v: &str| all(v, |c| c.is_ascii_digit()));
    library.method("isalpha", Cost::Read, |v: &str| all(v, char::is_alphabetic));
    library.method("isalnum", Cost::Read, |v: &str| all(v, char::is_alphanumeric));
    library.method("zfill", Cost::Read, |v: &str, width: usize| {
        check_text(Some(width))?;
        let (sign, digits) = match v.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", v),
        };
        let width = width.saturating_sub(sign.len());
        Ok::<_, Error>(format!("{sign}{}{digits}", "0".repeat(width.saturating_sub(digits.len()))))
    });
}

fn all(text: &str, is: impl Fn(char) -> bool) -> bool {
    !text.is_empty() && text.chars().all(is)
}

fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().collect::<String>() + &chars.as_str().to_lowercase(),
        None => String::new(),
    }
}

fn title(text: &str) -> String {
    let mut titled = String::with_capacity(text.len());
    let mut inside_word = false;
    for c in text.chars() {
        if inside_word {
            titled.extend(c.to_lowercase());
        } else {
            titled.extend(c.to_uppercase());
        }
        inside_word = c.is_alphanumeric() || inside_word && c == '\'';
    }
    titled
}

/// Converts text to lowercase words of letters and digits, joined by single hyphens.
fn slugify(text: &str) -> String {
    let lower = text.to_lowercase();
    lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join("-")
}

fn replace(
    value: &Data,
    old: &Data,
    new: &Data,
    count: Option<i64>,
    named: Kwargs,
) -> Result<String, Error> {
    let count = argument(count, &named, "count")?;
    named.assert_all_used()?;
    let (value, old, new) = (text(value)?, text(old)?, text(new)?);
    // As in Python, a negative count means no limit.
    let limit = count.and_then(|count| usize::try_from(count).ok());
    let matches = value.matches(&*old).take(limit.unwrap_or(usize::MAX)).count();
    let growth = matches.checked_mul(new.len());
    check_text(growth.and_then(|growth| growth.checked_add(value.len())))?;
    Ok(value.replacen(&*old, &new, matches))
}

fn split(
    value: &Data,
    separator: Option<Data>,
    maxsplit: Option<i64>,
    named: Kwargs,
) -> Result<Vec<String>, Error> {
    let maxsplit = argument(maxsplit, &named, "maxsplit")?;
    named.assert_all_used()?;
    let value = text(value)?;
    let parts = match maxsplit {
        Some(splits) if splits >= 0 => usize::try_from(splits).unwrap_or(usize::MAX - 1) + 1,
        _ => usize::MAX,
    };
    let separator = match &separator {
        Some(separator) if !separator.is_none() => Some(text(separator)?),
        _ => None,
    };
    match separator {
        Some(separator) if separator.is_empty() => fail("the separator is empty"),
        Some(separator) => {
            check_items(Some(value.splitn(parts, &*separator).count()))?;
            Ok(value.splitn(parts, &*separator).map(str::to_owned).collect())
        }
        None => words(value.trim_start(), parts),
    }
}

/// Splits text at runs of whitespace. The last part contains the remaining text.
fn words(mut rest: &str, parts: usize) -> Result<Vec<String>, Error> {
    let mut list = Vec::new();
    while !rest.is_empty() {
        check_items(Some(list.len() + 1))?;
        if list.len() + 1 == parts {
            list.push(rest.trim_end().to_owned());
            break;
        }
        let (word, after) = match rest.split_once(char::is_whitespace) {
            Some((word, after)) => (word, after.trim_start()),
            None => (rest, ""),
        };
        list.push(word.to_owned());
        rest = after;
    }
    Ok(list)
}

fn join(
    value: &Data,
    separator: Option<Data>,
    attribute: Option<String>,
    named: Kwargs,
) -> Result<String, Error> {
    let separator = argument(separator, &named, "d")?;
    let attribute = argument(attribute, &named, "attribute")?;
    named.assert_all_used()?;
    let separator = separator.unwrap_or_default();
    let separator = text(&separator)?;
    let mut joined = String::new();
    for (place, item) in value.try_iter()?.checked().enumerate() {
        let mut item = item?;
        for key in attribute.iter().flat_map(|path| path.split('.')) {
            item = item.get_attr(key).unwrap_or_default();
        }
        if place > 0 {
            joined.push_str(&separator);
        }
        joined.push_str(&text(&item)?);
        check_text(Some(joined.len()))?;
    }
    Ok(joined)
}

fn indent(
    value: &Data,
    width: Option<usize>,
    first: Option<bool>,
    blank: Option<bool>,
    named: Kwargs,
) -> Result<String, Error> {
    let width = argument(width, &named, "width")?.unwrap_or(4);
    let first = argument(first, &named, "first")?.unwrap_or(false);
    let blank = argument(blank, &named, "blank")?.unwrap_or(false);
    named.assert_all_used()?;
    let value = text(value)?;
    let growth = value.lines().count().saturating_add(1).checked_mul(width);
    check_text(growth.and_then(|growth| growth.checked_add(value.len())))?;
    let margin = " ".repeat(width);
    let mut indented = String::with_capacity(value.len());
    for (place, line) in value.split('\n').enumerate() {
        if place > 0 {
            indented.push('\n');
        }
        if (place > 0 || first) && (blank || !line.trim().is_empty()) {
            indented.push_str(&margin);
        }
        indented.push_str(line);
    }
    Ok(indented)
}

/// Shortens a text to `length` characters including `end`, at a word boundary unless `killwords`.
fn truncate(
    value: &Data,
    length: Option<usize>,
    killwords: Option<bool>,
    end: Option<String>,
    named: Kwargs,
) -> Result<String, Error> {
    let length = argument(length, &named, "length")?.unwrap_or(255);
    let killwords = argument(killwords, &named, "killwords")?.unwrap_or(false);
    let end = argument(end, &named, "end")?.unwrap_or_else(|| "...".to_owned());
    let leeway = argument(None, &named, "leeway")?.unwrap_or(5);
    named.assert_all_used()?;
    let value = text(value)?;
    if value.chars().count() <= length.saturating_add(leeway) {
        return Ok(value.into_owned());
    }
    let length = length.saturating_sub(end.chars().count());
    let mut truncated: String = value.chars().take(length).collect();
    if !killwords && let Some(space) = truncated.rfind(' ') {
        truncated.truncate(space);
    }
    Ok(truncated + &end)
}

/// Applies printf-style formatting, `'%s: %d' | format(a, b)`, with bounded widths.
fn format(
    state: &mut State<'_, '_>,
    value: &Data,
    arguments: Rest<ValueOrKwargs>,
) -> Result<Data, Error> {
    /// Maximum number of digits of a width.
    const WIDTH_DIGITS_MAX: usize = 4;
    const WIDTH_MAX: usize = 9999;
    let pattern = text(value)?;
    let mut digits = 0;
    for c in pattern.chars() {
        digits = if c.is_ascii_digit() { digits + 1 } else { 0 };
        if digits > WIDTH_DIGITS_MAX || c == '*' && pattern.contains("%*") {
            return fail("the format's width exceeds the limit of 9999");
        }
    }
    let mut longest = WIDTH_MAX;
    for argument in arguments.iter() {
        let Ok(named) = Kwargs::try_from(Data::clone(argument)) else {
            longest = longest.max(text(argument)?.len());
            continue;
        };
        for name in named.args() {
            longest = longest.max(text(&named.peek::<Data>(name)?)?.len());
        }
    }
    let growth = pattern.matches('%').count().checked_mul(longest);
    check_text(growth.and_then(|growth| growth.checked_add(pattern.len())))?;
    filters::format(state, &Data::from(&*pattern), arguments)
}
