//! Builds the tree from the parser's events.

use std::collections::HashMap;
use std::rc::Rc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput, Tag};

use super::entries::Entries;
use super::node::{MapKey, Node, NodeKind, QuoteStyle};
use super::source::SourceText;
use super::{ALIAS_BYTES_MAX, ALIAS_NODES_MAX, DEPTH_MAX, DOCUMENT_BYTES_MAX, NODES_MAX};
use super::{scalar, syntax};
use crate::diagnostic::SourcePos;
use crate::diagnostics::Diagnostics;

/// Parses the only document of a text. Returns `None` on a fatal error; reports others, such as
/// duplicate keys, and continues.
pub(crate) fn read(source: &SourceText<'_>, findings: &mut Diagnostics) -> Option<Node> {
    read_up_to(NODES_MAX, source, findings)
}

/// Like [`read`], but with a custom limit on values, so that tests don't need millions of them.
pub(super) fn read_up_to(
    nodes_max: usize,
    source: &SourceText<'_>,
    findings: &mut Diagnostics,
) -> Option<Node> {
    let text = source.text();
    if text.len() > DOCUMENT_BYTES_MAX {
        let message =
            format!("the document has {} bytes; the limit is {DOCUMENT_BYTES_MAX}", text.len());
        let help = "split the playbook, or move its data out of the document";
        findings.error("E007", SourcePos::START, "", message, help);
        return None;
    }
    if let Some(at) = control_character(text) {
        let message = "a control character cannot be part of a YAML document";
        findings.error(
            "E000",
            at,
            "",
            message,
            "remove it, or write it as an escape in double quotes",
        );
        return None;
    }
    let mut builder = Builder {
        events: Parser::new_from_str(text),
        source,
        findings,
        anchors: HashMap::new(),
        nodes_max,
        nodes: 0,
        bytes: 0,
        alias_nodes: 0,
        alias_bytes: 0,
    };
    builder.document().ok()
}

/// Converts a parser's marker to a position. The parser counts columns from 0.
pub(super) fn place(mark: &Marker) -> SourcePos {
    SourcePos {
        line: u32::try_from(mark.line()).unwrap_or(u32::MAX).max(1),
        column: u32::try_from(mark.col()).unwrap_or(u32::MAX).saturating_add(1),
    }
}

/// Finds the first character that YAML forbids everywhere. The parser would treat a NUL as the end.
fn control_character(text: &str) -> Option<SourcePos> {
    let forbidden = |byte: &u8| matches!(byte, 0..=8 | 11 | 12 | 14..=31 | 127);
    let offset = text.bytes().position(|byte| forbidden(&byte))?;
    let before = &text[..offset];
    let line_start = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let lines = before.replace("\r\n", "\n").matches(['\n', '\r']).count();
    Some(SourcePos {
        line: u32::try_from(lines).unwrap_or(u32::MAX).saturating_add(1),
        column: u32::try_from(before[line_start..].chars().count())
            .unwrap_or(u32::MAX)
            .saturating_add(1),
    })
}

/// Fatal error that has already been reported.
struct BuildAborted;

/// A finished node and its height in levels.
struct Built {
    node: Node,
    height: usize,
}

/// Target of an alias and its expansion cost.
struct Anchor {
    built: Built,
    nodes: usize,
    bytes: usize,
}

struct Builder<'t, 's> {
    events: Parser<'t, StrInput<'t>>,
    source: &'s SourceText<'t>,
    findings: &'s mut Diagnostics,
    anchors: HashMap<usize, Anchor>,
    nodes_max: usize,
    nodes: usize,
    bytes: usize,
    alias_nodes: usize,
    alias_bytes: usize,
}

impl<'t> Builder<'t, '_> {
    fn document(&mut self) -> Result<Node, BuildAborted> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentEnd | Event::Nothing => {}
                Event::DocumentStart(_) if root.is_none() => {
                    let (event, span) = self.next()?;
                    root = Some(self.node(event, span, 0)?.node);
                }
                Event::StreamEnd => break,
                _ => {
                    let at = place(&span.start);
                    let message = "the file holds several documents";
                    self.findings.error(
                        "E000",
                        at,
                        "",
                        message,
                        "keep one document per file; remove '---'",
                    );
                    return Err(BuildAborted);
                }
            }
        }
        match root {
            Some(root) if !root.is_null() => Ok(root),
            _ => {
                let help = "a playbook begins with 'apiVersion: noetl.io/v2' and 'kind: Playbook'";
                self.findings.error("E000", SourcePos::START, "", "the document is empty", help);
                Err(BuildAborted)
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'t>, Span), BuildAborted> {
        match self.events.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                syntax::report(&error, self.source, self.findings);
                Err(BuildAborted)
            }
            None => Err(BuildAborted),
        }
    }

    /// Builds the node that starts with `event`, `depth` levels below the root.
    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Built, BuildAborted> {
        let at = place(&span.start);
        if depth >= DEPTH_MAX {
            syntax::too_deep(at, self.findings);
            return Err(BuildAborted);
        }
        self.nodes += 1;
        self.count(at)?;
        let before = (self.nodes - 1, self.bytes);
        let (anchor, built) = match event {
            Event::Alias(anchor) => return self.alias(anchor, at, depth),
            Event::Scalar(text, style, anchor, tag) => {
                self.bytes += text.len();
                let kind = self.scalar(&text, QuoteStyle::from(style), tag.as_deref(), at);
                (anchor, Built { node: Node { kind, at }, height: 1 })
            }
            Event::SequenceStart(anchor, tag) => {
                self.collection_tag(tag.as_deref(), "seq", at);
                (anchor, self.list(at, depth)?)
            }
            Event::MappingStart(anchor, tag) => {
                self.collection_tag(tag.as_deref(), "map", at);
                (anchor, self.map(at, depth)?)
            }
            _ => return Err(BuildAborted),
        };
        if anchor > 0 {
            let shared = Built { node: built.node.clone(), height: built.height };
            let (nodes, bytes) = (self.nodes - before.0, self.bytes - before.1);
            self.anchors.insert(anchor, Anchor { built: shared, nodes, bytes });
        }
        Ok(built)
    }

    fn alias(&mut self, anchor: usize, at: SourcePos, depth: usize) -> Result<Built, BuildAborted> {
        let Some(anchor) = self.anchors.get(&anchor) else {
            let message = "the alias stands inside the value it repeats";
            self.findings.error(
                "E000",
                at,
                "",
                message,
                "a value cannot contain itself; remove the alias",
            );
            return Err(BuildAborted);
        };
        let built = Built { node: anchor.built.node.clone(), height: anchor.built.height };
        // The alias itself has already been counted as one value.
        self.nodes += anchor.nodes - 1;
        self.bytes += anchor.bytes;
        self.alias_nodes += anchor.nodes;
        self.alias_bytes += anchor.bytes;
        if self.alias_nodes > ALIAS_NODES_MAX || self.alias_bytes > ALIAS_BYTES_MAX {
            let message = format!(
                "aliases unfold to more than {ALIAS_NODES_MAX} values or {ALIAS_BYTES_MAX} bytes"
            );
            self.findings.error(
                "E007",
                at,
                "",
                message,
                "repeat less, or pass the data as workload",
            );
            return Err(BuildAborted);
        }
        self.count(at)?;
        if depth + built.height > DEPTH_MAX {
            syntax::too_deep(at, self.findings);
            return Err(BuildAborted);
        }
        Ok(built)
    }

    fn count(&mut self, at: SourcePos) -> Result<(), BuildAborted> {
        if self.nodes <= self.nodes_max {
            return Ok(());
        }
        let message = format!("the document holds more than {} values", self.nodes_max);
        self.findings.error(
            "E007",
            at,
            "",
            message,
            "split the playbook, or move its data out of the document",
        );
        Err(BuildAborted)
    }

    fn scalar(
        &mut self,
        text: &str,
        style: QuoteStyle,
        tag: Option<&Tag>,
        at: SourcePos,
    ) -> NodeKind {
        let kind = match tag {
            None => scalar::untagged(text, style),
            Some(tag) if tag.is_yaml_core_schema() => scalar::tagged(&tag.suffix, text, style),
            // A lone `!` means that the scalar is text as written.
            Some(tag) if tag.handle.is_empty() && tag.suffix == "!" => {
                Ok(NodeKind::Text(Rc::from(text), style))
            }
            Some(tag) => Err(scalar::unknown(&tag.to_string())),
        };
        kind.unwrap_or_else(|unfit| {
            self.findings.error("E009", at, "", unfit.message, unfit.help);
            NodeKind::Text(Rc::from(text), style)
        })
    }

    fn collection_tag(&mut self, tag: Option<&Tag>, expected: &str, at: SourcePos) {
        let Some(tag) = tag else { return };
        let lone = tag.handle.is_empty() && tag.suffix == "!";
        if lone || (tag.is_yaml_core_schema() && tag.suffix == expected) {
            return;
        }
        let name =
            if tag.is_yaml_core_schema() { format!("!!{}", tag.suffix) } else { tag.to_string() };
        let unfit = scalar::unknown(&name);
        self.findings.error("E009", at, "", unfit.message, unfit.help);
    }

    fn list(&mut self, at: SourcePos, depth: usize) -> Result<Built, BuildAborted> {
        let (mut items, mut height) = (Vec::new(), 0);
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                let kind = NodeKind::List(Rc::new(items));
                return Ok(Built { node: Node { kind, at }, height: height + 1 });
            }
            let item = self.node(event, span, depth + 1)?;
            height = height.max(item.height);
            items.push(item.node);
        }
    }

    fn map(&mut self, at: SourcePos, depth: usize) -> Result<Built, BuildAborted> {
        let mut entries = Entries::default();
        let mut height = 0;
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let key_at = place(&span.start);
            let merges =
                matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<");
            let key = self.key(event, span, depth)?;
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth + 1)?;
            height = height.max(value.height);
            match key {
                Some(_) if merges => self.merge(&mut entries, value.node, key_at),
                Some(name) => self.insert(&mut entries, MapKey { name, at: key_at }, value.node),
                None if self.source.rest(at).starts_with("{{") => entries.bare_template = true,
                None => {
                    let help = "write a name, in quotes if it holds special characters";
                    let message = "a key must be text or a number";
                    self.findings.error("E009", key_at, "", message, help);
                }
            }
        }
        let kind = if entries.bare_template {
            self.bare_template(at)
        } else {
            NodeKind::Map(Rc::new(entries.finish()))
        };
        Ok(Built { node: Node { kind, at }, height: height + 1 })
    }

    /// Returns the text of a key, or `None` if it is a list, a mapping, or empty.
    fn key(
        &mut self,
        event: Event<'t>,
        span: Span,
        depth: usize,
    ) -> Result<Option<Rc<str>>, BuildAborted> {
        if let Event::Scalar(text, style, 0, None) = &event {
            let empty = text.is_empty() && *style == ScalarStyle::Plain;
            self.bytes += text.len();
            return Ok((!empty).then(|| Rc::from(&**text)));
        }
        let node = self.node(event, span, depth + 1)?.node;
        Ok(match node.kind {
            NodeKind::Text(text, _) => Some(text),
            NodeKind::Bool(value) => Some(Rc::from(value.to_string())),
            NodeKind::Int(value) => Some(Rc::from(value.to_string())),
            NodeKind::Large(value) => Some(Rc::from(value.to_string())),
            NodeKind::Float(value) => Some(Rc::from(value.to_string())),
            NodeKind::Null | NodeKind::List(_) | NodeKind::Map(_) => None,
        })
    }

    fn insert(&mut self, entries: &mut Entries, key: MapKey, value: Node) {
        if let Some(first) = entries.place_of(&key.name) {
            let message = format!("the key '{}' is on line {} already", key.name, first.line);
            let help = if first.line == key.at.line {
                "keep one of the two".to_owned()
            } else {
                format!("keep one of lines {} and {}", first.line, key.at.line)
            };
            self.findings.error("E008", key.at, "", message, help);
        } else {
            entries.push(key, value);
        }
    }

    fn merge(&mut self, entries: &mut Entries, value: Node, at: SourcePos) {
        let sources = match &value.kind {
            NodeKind::List(items) => items.iter().cloned().collect(),
            _ => vec![value],
        };
        for source in sources {
            if let NodeKind::Map(inherited) = &source.kind {
                entries.inherited.push(Rc::clone(inherited));
            } else {
                let message = format!("'<<' merges mappings; this is {}", source.described());
                self.findings.error(
                    "E009",
                    at,
                    "",
                    message,
                    "write '<<: *anchor' or '<<: [*one, *two]'",
                );
            }
        }
    }

    /// Reports an unquoted `key: {{ x }}`, which YAML parses as a mapping with a mapping as its
    /// key. Returns the text that the author intended.
    fn bare_template(&mut self, at: SourcePos) -> NodeKind {
        let rest = self.source.rest(at);
        let line = &rest[..rest.find(['\n', '\r']).unwrap_or(rest.len())];
        let text = line.find("}}").map_or(line, |end| &line[..end + 2]);
        let help = format!("write \"{text}\"");
        let message = "a value that begins with a template must be in quotes";
        self.findings.error("E009", at, "", message, help);
        NodeKind::Text(Rc::from(text), QuoteStyle::Plain)
    }
}
