//! Rewrites of names within templates.

use noetl_template::{Guard, Template};

use super::Fixer;
use super::edits::Edit;
use super::tree::{FixNode, NodeStyle, Shape};

const OLDER: &str = "outcome";
const NAME: &str = "output";

/// Keys whose text is a condition, with or without braces.
const CONDITIONS: &[&str] = &["when", "cond", "condition", "expr"];

/// Replaces `outcome` with `output` in the templates below a value.
pub(super) fn rewrite(fixer: &mut Fixer<'_>, at: &FixNode, is_condition: bool) {
    if at.shared {
        return;
    }
    match &at.shape {
        Shape::Scalar(text, style) => scalar(fixer, at, text, *style, is_condition),
        Shape::List(items, _) => items.iter().for_each(|item| rewrite(fixer, item, false)),
        Shape::Map(entries, _) => {
            let raw = at.get("raw").and_then(FixNode::text) == Some("true");
            for (key, value) in entries {
                let name = key.text().unwrap_or_default();
                if !(raw && name == "code") {
                    rewrite(fixer, value, CONDITIONS.contains(&name));
                }
            }
        }
        Shape::Alias => {}
    }
}

fn scalar(fixer: &mut Fixer<'_>, at: &FixNode, text: &str, style: NodeStyle, is_condition: bool) {
    if !text.contains(OLDER) || !uses(text, is_condition) {
        return;
    }
    let bare = is_condition && !Template::is_template(text);
    let content = fixer.content(at);
    let characters = characters(&fixer.text[content.clone()], style);
    let places: Vec<usize> =
        mentions(&characters, bare).into_iter().map(|place| content.start + place).collect();
    let Some(first) = places.first().copied() else { return };
    let edit = |start: &usize| Edit::replace(*start..start + OLDER.len(), NAME);
    fixer.push(first, format!("wrote '{NAME}' for '{OLDER}'"), places.iter().map(edit).collect());
}

/// Returns `true` if a template refers to the deprecated name. Text that merely contains the word
/// does not count.
fn uses(text: &str, is_condition: bool) -> bool {
    let template = if is_condition {
        Guard::parse(text).ok().and_then(|guard| guard.template().cloned())
    } else if Template::is_template(text) {
        Template::parse(text).ok()
    } else {
        None
    };
    template.is_some_and(|template| template.names().contains(OLDER))
}

/// Returns the characters of a scalar's text, each with its byte position as written. Escapes other
/// than of a quote, slash, or backslash become a space, because none of them can be part of a name.
fn characters(written: &str, style: NodeStyle) -> Vec<(usize, char)> {
    let mut replacements = Vec::new();
    let mut rest = written.char_indices().peekable();
    while let Some((at, character)) = rest.next() {
        let meant = match (style, character) {
            (NodeStyle::Single, '\'') => {
                rest.next_if(|(_, next)| *next == '\'');
                '\''
            }
            (NodeStyle::Double, '\\') => match rest.next() {
                Some((_, escaped @ ('"' | '\\' | '/'))) => escaped,
                _ => ' ',
            },
            _ => character,
        };
        replacements.push((at, meant));
    }
    replacements
}

/// Returns the byte positions of the name: within an expression, and neither in quotes nor after a
/// dot.
fn mentions(characters: &[(usize, char)], bare: bool) -> Vec<usize> {
    let begins = |at: usize, word: &str| {
        let mut written = characters[at.min(characters.len())..].iter().map(|(_, c)| *c);
        word.chars().all(|wanted| written.next() == Some(wanted))
    };
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut places = Vec::new();
    let mut inside = bare;
    let mut quoted: Option<char> = None;
    let mut before = ' ';
    let mut at = 0;
    while let Some(&(place, character)) = characters.get(at) {
        if let Some(quote) = quoted {
            match character {
                // Escape character of the template language.
                '\\' => at += 1,
                _ if character == quote => quoted = None,
                _ => {}
            }
            before = ' ';
        } else if !inside {
            inside = begins(at, "{{") || begins(at, "{%");
            at += usize::from(inside);
            before = ' ';
        } else if !bare && (begins(at, "}}") || begins(at, "%}")) {
            inside = false;
            at += 1;
        } else if matches!(character, '\'' | '"') {
            quoted = Some(character);
        } else {
            if begins(at, OLDER) && !word(before) && before != '.' {
                let behind = at + OLDER.len();
                let after = characters.get(behind).map_or(' ', |(_, c)| *c);
                if !word(after) && !names_argument(characters, behind) {
                    places.push(place);
                }
            }
            // A dot may be followed by whitespace; a word ends at it.
            if !character.is_whitespace() {
                before = character;
            } else if word(before) {
                before = ' ';
            }
        }
        at += 1;
    }
    places
}

/// Returns `true` if the name is that of an argument: `f(outcome=1)`, but not `outcome == 1`.
fn names_argument(characters: &[(usize, char)], behind: usize) -> bool {
    let rest = characters.get(behind..).unwrap_or_default().iter().map(|(_, c)| *c);
    let mut rest = rest.skip_while(|c| c.is_whitespace());
    rest.next() == Some('=') && rest.next() != Some('=')
}
