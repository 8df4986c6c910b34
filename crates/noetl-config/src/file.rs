//! Parses a configuration file and finds all its problems.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::kind::{RawValue, found};
use crate::problem::{Origin, Position, Problem};
use crate::setting::Setting;
use crate::suggest;
use crate::tree::Options;

/// Settings of one file that have no problem, by key.
#[derive(Debug, Clone, Default)]
pub struct FileLayer {
    pub path: PathBuf,
    pub(crate) values: BTreeMap<&'static str, (RawValue, Position)>,
}

impl FileLayer {
    /// Parses the content of a file. `is_trusted` is `false` for a file in the working directory,
    /// which must not contain guarded settings.
    ///
    /// Returns the settings without problems, and all problems in the order of the file. No message
    /// contains a secret.
    pub fn read(path: &Path, content: &[u8], is_trusted: bool) -> (Self, Vec<Problem>) {
        let text = match std::str::from_utf8(content) {
            Ok(text) => text,
            Err(error) => {
                let before = String::from_utf8_lossy(&content[..error.valid_up_to()]);
                let position = Lines::new(path, &before).position(before.len());
                let problem = Problem::in_file(position, "the file is not valid UTF-8");
                let layer = Self { path: path.to_owned(), values: BTreeMap::new() };
                return (layer, vec![problem]);
            }
        };
        let mut reader = Reader {
            lines: Lines::new(path, text),
            is_trusted,
            problems: Vec::new(),
            layer: Self { path: path.to_owned(), values: BTreeMap::new() },
        };
        let (root, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let message = format!("the file is not valid TOML: {}", error.message().trim_end());
            let message = message.replace('\n', ", ");
            reader.problem(error.span().unwrap_or(0..0), message, Hint::None);
        }
        // After a syntax error, a key may belong to another table than the author meant.
        if reader.problems.is_empty() {
            reader.root(root.get_ref());
        }
        reader.finish()
    }

    /// Parses the content of a file that must have no problems.
    ///
    /// # Errors
    ///
    /// Returns all problems, in the order of the file.
    pub fn parse(path: &Path, content: &[u8], is_trusted: bool) -> Result<Self, Vec<Problem>> {
        let (layer, problems) = Self::read(path, content, is_trusted);
        if problems.is_empty() { Ok(layer) } else { Err(problems) }
    }
}

/// Maximum number of problems of a file that are reported one by one.
const PROBLEMS_MAX: usize = 100;

/// Maximum number of problems for which a similar name is searched. A file may have 100,000 keys.
const SUGGESTIONS_MAX: usize = 20;

struct Reader<'a> {
    lines: Lines<'a>,
    is_trusted: bool,
    problems: Vec<FoundProblem>,
    layer: FileLayer,
}

/// Problem at a byte offset. Its position and its suggestion are computed only if it is reported.
struct FoundProblem {
    offset: usize,
    message: String,
    hint: Hint,
}

enum Hint {
    None,
    Text(String),
    /// Similar name of a section.
    Section(String),
    /// Similar key of any section.
    Key(String),
    /// Similar name of one of these settings.
    Name(String, &'static [Setting]),
}

impl Hint {
    fn text(self) -> Option<String> {
        let (wrong, nearest) = match self {
            Self::None => return None,
            Self::Text(text) => return Some(text),
            Self::Section(wrong) => {
                let sections = Options::sections().map(|section| section.name);
                let nearest = suggest::nearest(&wrong, sections);
                (wrong, nearest)
            }
            Self::Key(wrong) => {
                let nearest = suggest::nearest(&wrong, Options::settings().map(|it| it.key));
                (wrong, nearest)
            }
            Self::Name(wrong, settings) => {
                let nearest = suggest::nearest(&wrong, settings.iter().map(Setting::name));
                (wrong, nearest)
            }
        };
        nearest.or_else(|| key_of_any_section(&wrong)).map(did_you_mean)
    }

    fn is_suggestion(&self) -> bool {
        match self {
            Self::None | Self::Text(_) => false,
            Self::Section(_) | Self::Key(_) | Self::Name(..) => true,
        }
    }
}

impl Reader<'_> {
    fn root(&mut self, root: &DeTable<'_>) {
        for (name, value) in root {
            let section = Options::sections().find(|section| section.name == &**name.get_ref());
            match (section, value.get_ref()) {
                (Some(section), DeValue::Table(table)) => self.section(section.settings, table),
                (Some(section), other) => {
                    let message =
                        format!("{} is a table, not {}", section.name, found(other, true));
                    let hint = format!("write [{}] and its settings below", section.name);
                    self.problem(value.span(), message, Hint::Text(hint));
                }
                (None, _) => self.unknown_section(name, value.get_ref()),
            }
        }
    }

    fn section(&mut self, settings: &'static [Setting], table: &DeTable<'_>) {
        for (name, value) in table {
            match settings.iter().find(|setting| setting.name() == &**name.get_ref()) {
                Some(setting) => self.value(setting, name, value),
                None => self.unknown_key(settings, name),
            }
        }
    }

    fn value(
        &mut self,
        setting: &'static Setting,
        name: &Spanned<impl AsRef<str>>,
        value: &Spanned<DeValue<'_>>,
    ) {
        let key = setting.key;
        if setting.is_guarded && !self.is_trusted {
            let hint = "name the file with --config or NOETL_CONFIG if you trust it, or set the \
                        key in the file of your user or of this machine";
            let message = format!("{key} has no effect in a file of the working directory");
            self.problem(name.span(), message, Hint::Text(hint.to_owned()));
            return;
        }
        let expected = setting.kind.expected();
        let shown = found(value.get_ref(), setting.is_secret());
        let given = setting.kind.raw_value(value.get_ref());
        let Some(given) =
            given.filter(|given| given.is_empty() || setting.kind.parse(given).is_ok())
        else {
            let message = format!("{key} is {expected}, not {shown}");
            self.problem(value.span(), message, Hint::None);
            return;
        };
        let position = self.lines.position(value.span().start);
        self.layer.values.insert(key, (given, position));
    }

    fn unknown_section(&mut self, name: &Spanned<impl AsRef<str>>, value: &DeValue<'_>) {
        let wrong = name.get_ref().as_ref();
        let (what, hint) = match value {
            DeValue::Table(_) => ("section", Hint::Section(wrong.to_owned())),
            _ => ("key", Hint::Key(wrong.to_owned())),
        };
        self.problem(name.span(), format!("unknown {what} {}", quoted(wrong)), hint);
    }

    fn unknown_key(&mut self, settings: &'static [Setting], name: &Spanned<impl AsRef<str>>) {
        let wrong = name.get_ref().as_ref();
        let section = settings.first().and_then(|setting| setting.key.split_once('.'));
        let section = section.map_or("", |(section, _)| section);
        let message = format!("unknown key {} in [{section}]", quoted(wrong));
        self.problem(name.span(), message, Hint::Name(wrong.to_owned(), settings));
    }

    fn problem(&mut self, span: Range<usize>, message: String, hint: Hint) {
        self.problems.push(FoundProblem { offset: span.start, message, hint });
    }

    /// Returns the settings and the problems in the order of the file.
    fn finish(mut self) -> (FileLayer, Vec<Problem>) {
        self.problems.sort_by_key(|problem| problem.offset);
        let others = self.problems.len().saturating_sub(PROBLEMS_MAX);
        self.problems.truncate(PROBLEMS_MAX);
        let mut suggestions = 0;
        let mut problems = Vec::with_capacity(self.problems.len() + 1);
        for FoundProblem { offset, message, hint } in self.problems {
            suggestions += usize::from(hint.is_suggestion());
            let hint = match hint.is_suggestion() && suggestions > SUGGESTIONS_MAX {
                true => None,
                false => hint.text(),
            };
            problems.push(Problem::in_file(self.lines.position(offset), message).hint(hint));
        }
        if others > 0 {
            let file = Position::of_file(&self.layer.path);
            problems.push(Problem::in_file(file, format!("{others} more problems are not listed")));
        }
        (self.layer, problems)
    }
}

/// Returns the key of a setting that has this name in some section, or this variable.
fn key_of_any_section(wrong: &str) -> Option<&'static str> {
    let mut settings = Options::settings();
    let is_meant =
        |setting: &&Setting| setting.name() == wrong || setting.variables.contains(&wrong);
    settings.find(is_meant).map(|setting| setting.key)
}

fn did_you_mean(name: &str) -> String {
    format!("did you mean {name}?")
}

/// Returns a key of a file on one line and of bounded length, for messages.
fn quoted(name: &str) -> String {
    let short: String = name.chars().take(60).collect();
    let dots = if short.len() < name.len() { "…" } else { "" };
    format!("'{}{dots}'", short.replace(char::is_control, "\u{fffd}"))
}

/// Text of a file with the offsets of its lines.
struct Lines<'a> {
    path: &'a Path,
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(path: &'a Path, text: &'a str) -> Self {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { path, text, starts: [0].into_iter().chain(starts).collect() }
    }

    /// Returns the position of a byte offset.
    fn position(&self, offset: usize) -> Position {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts[line - 1];
        Position {
            file: self.path.to_owned(),
            line,
            column: self.text[start..offset].chars().count() + 1,
        }
    }
}

/// Returns the origin of a value in a file.
pub(crate) fn origin(position: &Position) -> Origin {
    Origin::File(position.clone())
}
