//! A document with the exact extent of everything in it.
//!
//! Where [`crate::yaml`] says what a document means, this says which characters of the text say it,
//! so that they can be changed and all others left alone.

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};

/// Levels of nesting that are followed; deeper documents are refused before they get here.
const DEPTH_MAX: usize = 200;

/// One value, and where it is written.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) shape: Shape,
    /// Its first byte.
    pub(super) start: usize,
    /// The byte after its last, without space behind it.
    pub(super) end: usize,
    /// Whether it has an anchor or a tag, or repeats one: what is changed here would change
    /// elsewhere.
    pub(super) shared: bool,
}

/// What a value is.
#[derive(Debug)]
pub(super) enum Shape {
    /// Text, a number, a word; its content and how it is written.
    Scalar(String, Style),
    /// A list, and whether it is written in brackets.
    List(Vec<Item>, bool),
    /// A mapping, and whether it is written in braces.
    Map(Vec<(Item, Item)>, bool),
    /// A repetition of something anchored.
    Alias,
}

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Block,
}

impl Item {
    /// The entries of a mapping that stands only here.
    pub(super) fn entries(&self) -> &[(Item, Item)] {
        match &self.shape {
            Shape::Map(entries, _) if !self.shared => entries,
            _ => &[],
        }
    }

    /// The items of a list that stands only here.
    pub(super) fn items(&self) -> &[Item] {
        match &self.shape {
            Shape::List(items, _) if !self.shared => items,
            _ => &[],
        }
    }

    /// The entry of this key.
    pub(super) fn entry(&self, name: &str) -> Option<&(Item, Item)> {
        self.entries().iter().find(|(key, _)| key.text() == Some(name))
    }

    /// The value of this key.
    pub(super) fn get(&self, name: &str) -> Option<&Item> {
        self.entry(name).map(|(_, value)| value)
    }

    /// Whether there is such a key, with or without a value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    /// Its text, unless it is nothing at all.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.shape {
            Shape::Scalar(text, style) if !self.shared => {
                (!text.is_empty() || *style != Style::Plain).then_some(text)
            }
            _ => None,
        }
    }

    /// Whether it is a mapping or a list in braces or brackets.
    pub(super) fn is_flow(&self) -> bool {
        matches!(self.shape, Shape::List(_, true) | Shape::Map(_, true))
    }
}

/// Reads a text that is known to be one YAML document.
pub(super) fn read(text: &str) -> Option<Item> {
    let offsets = if text.is_ascii() {
        Vec::new()
    } else {
        text.char_indices().map(|(at, _)| at).chain([text.len()]).collect()
    };
    let mut reader = Reader { text, offsets, events: Parser::new_from_str(text) };
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

struct Reader<'t> {
    text: &'t str,
    /// Where each character begins; empty when every character is a byte.
    offsets: Vec<usize>,
    events: Parser<'t, StrInput<'t>>,
}

impl<'t> Reader<'t> {
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

    /// Whether a collection is written with brackets: one that begins where its first part does is
    /// not, whatever that part begins with.
    fn opens(&self, bracket: char, start: usize, first: Option<usize>) -> bool {
        self.text[start..].starts_with(bracket) && first != Some(start)
    }

    /// The dash in front of an item.
    fn dash(&self, first: usize) -> Option<usize> {
        let before = self.text[..first].trim_end();
        before.ends_with('-').then(|| before.len() - 1)
    }

    fn item(&mut self, event: &Event<'t>, span: Span, depth: usize) -> Option<Item> {
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
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted => Style::Single,
                    ScalarStyle::DoubleQuoted => Style::Double,
                    ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
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
                        // Nothing stands behind the colon.
                        let colon = self.text[key.end..].find(':').map_or(0, |at| at + 1);
                        (value.start, value.end) = (key.end + colon, key.end + colon);
                    }
                    entries.push((key, value));
                }
                let flow = self.opens('{', start, entries.first().map(|(key, _)| key.start));
                let last = entries.last().map(|(_, value)| value.end);
                end = collection_end(self.text, start, last, flow.then_some('}'))?;
                // What `<<` merges is written elsewhere.
                let merges = entries.iter().any(|(key, _)| key.text() == Some("<<"));
                (Shape::Map(entries, flow), *anchor > 0 || tag.is_some() || merges)
            }
            _ => return None,
        };
        let end = start + self.text.get(start..end).unwrap_or_default().trim_end().len();
        Some(Item { shape, start, end, shared })
    }
}

/// Where a scalar ends. The parser's own mark may lie behind a comment.
fn scalar_end(text: &str, start: usize, spanned: usize, content: &str, style: Style) -> usize {
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
        Style::Single => quoted('\''),
        Style::Double => quoted('"'),
        Style::Block => spanned,
        Style::Plain => {
            // Lines of a plain scalar are joined; everything else in it is as written.
            let mut at = start;
            for character in content.chars().filter(|character| !character.is_whitespace()) {
                match text[at..].find(character) {
                    Some(found) => at += found + character.len_utf8(),
                    None => return spanned,
                }
            }
            at
        }
    }
}

/// Where a collection ends: with its last part, or with the bracket behind it.
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
