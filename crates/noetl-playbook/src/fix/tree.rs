//! Syntax tree of a document with the exact byte range of every value.
//!
//! [`crate::yaml`] yields the meaning of a document; this tree yields the bytes that express it, so
//! that an edit can change them and leave all others as they are.

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};

/// Maximum nesting depth. Deeper documents are rejected before this parser runs.
const DEPTH_MAX: usize = 200;

/// A value and its byte range.
#[derive(Debug)]
pub(super) struct FixNode {
    pub(super) shape: Shape,
    /// Offset of the first byte.
    pub(super) start: usize,
    /// Offset after the last byte, without trailing whitespace.
    pub(super) end: usize,
    /// Whether the value has an anchor or a tag, or is an alias. A change to it would affect other
    /// positions.
    pub(super) shared: bool,
}

#[derive(Debug)]
pub(super) enum Shape {
    /// Text, number, or word, with its content and style.
    Scalar(String, NodeStyle),
    /// A list, and whether it is in flow style (brackets).
    List(Vec<FixNode>, bool),
    /// A mapping, and whether it is in flow style (braces).
    Map(Vec<(FixNode, FixNode)>, bool),
    /// An alias of an anchored value.
    Alias,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeStyle {
    Plain,
    Single,
    Double,
    Block,
}

impl FixNode {
    /// Returns the entries of a mapping; empty if the value is shared.
    pub(super) fn entries(&self) -> &[(FixNode, FixNode)] {
        match &self.shape {
            Shape::Map(entries, _) if !self.shared => entries,
            _ => &[],
        }
    }

    /// Returns the items of a list; empty if the value is shared.
    pub(super) fn items(&self) -> &[FixNode] {
        match &self.shape {
            Shape::List(items, _) if !self.shared => items,
            _ => &[],
        }
    }

    /// Returns the entry with this key.
    pub(super) fn entry(&self, name: &str) -> Option<&(FixNode, FixNode)> {
        self.entries().iter().find(|(key, _)| key.text() == Some(name))
    }

    /// Returns the value of this key.
    pub(super) fn get(&self, name: &str) -> Option<&FixNode> {
        self.entry(name).map(|(_, value)| value)
    }

    /// Returns `true` if the key is present, with or without a value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    /// Returns the text of a scalar, or `None` if it is empty and unquoted.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.shape {
            Shape::Scalar(text, style) if !self.shared => {
                (!text.is_empty() || *style != NodeStyle::Plain).then_some(text)
            }
            _ => None,
        }
    }

    /// Returns `true` if the value is a list or mapping in flow style.
    pub(super) fn is_flow(&self) -> bool {
        matches!(self.shape, Shape::List(_, true) | Shape::Map(_, true))
    }
}

/// Parses a text that is known to be a single YAML document.
pub(super) fn read(text: &str) -> Option<FixNode> {
    let offsets = if text.is_ascii() {
        Vec::new()
    } else {
        text.char_indices().map(|(at, _)| at).chain([text.len()]).collect()
    };
    let mut reader = TreeReader { text, offsets, events: Parser::new_from_str(text) };
    loop {
        match reader.next()? {
            (Event::DocumentStart(_), _) => {
                let (event, span) = reader.next()?;
                return reader.item(&event, span, 0);
            }
            (Event::StreamStart | Event::Nothing, _) => {}
            _ => return None,
        }
    }
}

struct TreeReader<'t> {
    text: &'t str,
    /// Byte offset of each character. Empty if every character is a single byte.
    offsets: Vec<usize>,
    events: Parser<'t, StrInput<'t>>,
}

impl<'t> TreeReader<'t> {
    fn next(&mut self) -> Option<(Event<'t>, Span)> {
        self.events.next_event()?.ok()
    }

    fn byte(&self, index: usize) -> usize {
        match self.offsets.get(index) {
            Some(at) => *at,
            None if self.offsets.is_empty() => index.min(self.text.len()),
            None => self.text.len(),
        }
    }

    /// Returns `true` if a collection is in flow style. A collection that starts at its first
    /// element is in block style, even if that element starts with a bracket.
    fn opens(&self, bracket: char, start: usize, first: Option<usize>) -> bool {
        self.text[start..].starts_with(bracket) && first != Some(start)
    }

    /// Returns the position of the dash before a list item.
    fn dash(&self, first: usize) -> Option<usize> {
        let before = self.text[..first].trim_end();
        before.ends_with('-').then(|| before.len() - 1)
    }

    fn item(&mut self, event: &Event<'t>, span: Span, depth: usize) -> Option<FixNode> {
        if depth > DEPTH_MAX {
            return None;
        }
        let mut start = self.byte(span.start.index());
        let end;
        let (shape, shared) = match event {
            Event::Alias(_) => {
                end = self.byte(span.end.index());
                (Shape::Alias, true)
            }
            Event::Scalar(text, style, anchor, tag) => {
                let style = match style {
                    ScalarStyle::Plain => NodeStyle::Plain,
                    ScalarStyle::SingleQuoted => NodeStyle::Single,
                    ScalarStyle::DoubleQuoted => NodeStyle::Double,
                    ScalarStyle::Literal | ScalarStyle::Folded => NodeStyle::Block,
                };
                let shared = *anchor > 0 || tag.is_some();
                let spanned = self.byte(span.end.index());
                end = if shared {
                    spanned
                } else {
                    scalar_end(self.text, start, spanned, text, style)
                };
                (Shape::Scalar(text.to_string(), style), shared)
            }
            Event::SequenceStart(anchor, tag) => {
                let mut items = Vec::new();
                loop {
                    let (event, span) = self.next()?;
                    if event == Event::SequenceEnd {
                        break;
                    }
                    items.push(self.item(&event, span, depth + 1)?);
                }
                let first = items.first().map(|first| first.start);
                let flow = self.opens('[', start, first);
                if let (false, Some(first)) = (flow, first) {
                    start = self.dash(first).unwrap_or(start);
                }
                let last = items.last().map(|last| last.end);
                end = collection_end(self.text, start, last, flow.then_some(']'))?;
                (Shape::List(items, flow), *anchor > 0 || tag.is_some())
            }
            Event::MappingStart(anchor, tag) => {
                let mut entries = Vec::new();
                loop {
                    let (event, span) = self.next()?;
                    if event == Event::MappingEnd {
                        break;
                    }
                    let key = self.item(&event, span, depth + 1)?;
                    let (event, span) = self.next()?;
                    let mut value = self.item(&event, span, depth + 1)?;
                    if value.end <= key.end {
                        // The value after the colon is empty.
                        let colon = self.text[key.end..].find(':').map_or(0, |at| at + 1);
                        (value.start, value.end) = (key.end + colon, key.end + colon);
                    }
                    entries.push((key, value));
                }
                let flow = self.opens('{', start, entries.first().map(|(key, _)| key.start));
                let last = entries.last().map(|(_, value)| value.end);
                end = collection_end(self.text, start, last, flow.then_some('}'))?;
                // The values that `<<` merges are written at another position.
                let merges = entries.iter().any(|(key, _)| key.text() == Some("<<"));
                (Shape::Map(entries, flow), *anchor > 0 || tag.is_some() || merges)
            }
            _ => return None,
        };
        let end = start + self.text.get(start..end).unwrap_or_default().trim_end().len();
        Some(FixNode { shape, start, end, shared })
    }
}

/// Returns the end of a scalar. The end reported by the parser may lie after a comment.
fn scalar_end(text: &str, start: usize, spanned: usize, content: &str, style: NodeStyle) -> usize {
    let rest = &text[start..];
    let quoted = |quote: char| {
        let mut characters = rest.char_indices().skip(1).peekable();
        while let Some((at, character)) = characters.next() {
            if quote == '"' && character == '\\' {
                characters.next();
            } else if character == quote
                && !(quote == '\'' && characters.next_if(|(_, next)| *next == quote).is_some())
            {
                return start + at + 1;
            }
        }
        spanned
    };
    match style {
        NodeStyle::Single => quoted('\''),
        NodeStyle::Double => quoted('"'),
        NodeStyle::Block => spanned,
        NodeStyle::Plain => {
            // Lines of a plain scalar are joined; all other characters appear as written.
            let mut at = start;
            for character in content.chars().filter(|character| !character.is_whitespace()) {
                match text[at..].find(character) {
                    Some(offset) => at += offset + character.len_utf8(),
                    None => return spanned,
                }
            }
            at
        }
    }
}

/// Returns the end of a collection: the end of its last element, or of the closing bracket.
fn collection_end(
    text: &str,
    start: usize,
    last: Option<usize>,
    bracket: Option<char>,
) -> Option<usize> {
    let Some(bracket) = bracket else { return Some(last.unwrap_or(start)) };
    let mut at = last.unwrap_or(start + 1);
    loop {
        match text[at..].chars().next()? {
            '#' => at += text[at..].find('\n')?,
            character if character == bracket => return Some(at + 1),
            character if character.is_whitespace() || character == ',' => {
                at += character.len_utf8()
            }
            _ => return None,
        }
    }
}
