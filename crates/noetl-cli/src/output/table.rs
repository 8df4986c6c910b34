//! Formats tables with aligned columns and complete IDs.

use std::io::Write as _;

use tabwriter::TabWriter;

use super::style::{TextStyle, one_line};

/// Semantic color of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Bad,
    Warn,
    Faint,
}

impl Tone {
    /// Returns the tone of a status, ignoring case.
    pub(crate) fn of_status(status: &str) -> Self {
        match status.to_ascii_uppercase().as_str() {
            "COMPLETED" | "OK" | "ACTIVE" | "READY" | "CONNECTED" => Self::Good,
            "FAILED" | "BAD" | "UNHEALTHY" | "DISCONNECTED" | "ERROR" => Self::Bad,
            "CANCELLED" | "RUNNING" | "PAUSED" | "DRAINING" | "WARNING" => Self::Warn,
            _ => Self::Plain,
        }
    }

    /// Returns the text with the color of this tone.
    pub(crate) fn paint(self, style: TextStyle, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Good => style.good(text),
            Self::Bad => style.bad(text),
            Self::Warn => style.warn(text),
            Self::Faint => style.faint(text),
        }
    }
}

/// Text of a table cell with its tone.
#[derive(Debug, Clone)]
pub(crate) struct TableCell {
    text: String,
    tone: Tone,
}

impl TableCell {
    pub(crate) fn new(text: impl ToString) -> Self {
        Self { text: one_line(&text.to_string()), tone: Tone::Plain }
    }

    /// Creates a cell for an optional value; `-` if absent.
    pub(crate) fn maybe(text: Option<impl ToString>) -> Self {
        text.map_or_else(|| Self::new("-"), Self::new)
    }

    /// Creates a cell for a status, with its tone.
    pub(crate) fn status(text: &str) -> Self {
        Self::new(text).toned(Tone::of_status(text))
    }

    pub(crate) fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// Returns the text with its color. An empty cell contains no escape sequence.
    fn painted(&self, style: TextStyle) -> String {
        match self.text.is_empty() {
            true => String::new(),
            false => self.tone.paint(style, &self.text),
        }
    }
}

/// A table with a header and `N` columns.
pub(crate) struct Table<const N: usize> {
    head: [&'static str; N],
    rows: Vec<[TableCell; N]>,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(head: [&'static str; N]) -> Self {
        Self { head, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: [TableCell; N]) {
        self.rows.push(cells);
    }

    /// Formats the table, or returns the text `empty` if it has no rows.
    pub(crate) fn render(&self, style: TextStyle, empty: &str) -> String {
        grid(&self.head, &self.rows, style, empty)
    }
}

/// Formats rows below a header, or returns the text `empty` if there are no rows.
pub(crate) fn grid(
    head: &[impl ToString],
    rows: &[impl AsRef<[TableCell]>],
    style: TextStyle,
    empty: &str,
) -> String {
    if rows.is_empty() {
        return format!("{empty}\n");
    }
    let head: Vec<TableCell> =
        head.iter().map(|name| TableCell::new(name.to_string()).toned(Tone::Faint)).collect();
    let lines = std::iter::once(head.as_slice()).chain(rows.iter().map(AsRef::as_ref));
    let mut table = TabWriter::new(Vec::new()).minwidth(0).padding(2).ansi(true);
    for line in lines {
        let cells: Vec<String> = line.iter().map(|cell| cell.painted(style)).collect();
        // Writing to memory cannot fail.
        let _ = writeln!(table, "{}", cells.join("\t"));
    }
    let _ = table.flush();
    let text = table.into_inner().unwrap_or_default();
    // Empty cells at the end of a line leave its padding.
    String::from_utf8_lossy(&text).lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// Formats names and values on one line each, with aligned values.
pub(crate) fn fields(fields: &[(&str, TableCell)], style: TextStyle) -> String {
    let width = fields.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, cell) in fields {
        let name = format!("{name:width$}");
        let value = cell.tone.paint(style, &cell.text);
        text.push_str(&format!("{}  {value}\n", style.faint(&name)));
    }
    text
}

/// Formats each name and value as a `Name: value` line.
pub(crate) fn named(fields: &[(&str, TableCell)], style: TextStyle) -> String {
    let line = |(name, cell): &(&str, TableCell)| {
        format!("{}: {}\n", style.faint(name), cell.tone.paint(style, &cell.text))
    };
    fields.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_ids_are_not_truncated() {
        let mut table = Table::new(["ID", "STATUS", "PATH"]);
        table.row([
            TableCell::new(380_499_266_977_660_928_i64),
            TableCell::status("FAILED"),
            TableCell::new("é"),
        ]);
        table.row([
            TableCell::new(7),
            TableCell::status("RUNNING"),
            TableCell::maybe(None::<&str>),
        ]);
        assert_eq!(
            table.render(TextStyle::PLAIN, "nothing"),
            "ID                  STATUS   PATH\n\
             380499266977660928  FAILED   é\n\
             7                   RUNNING  -\n"
        );
    }

    #[test]
    fn lines_have_no_trailing_blanks() {
        let mut table = Table::new(["A", "B", "C"]);
        table.row([TableCell::new("a"), TableCell::new(""), TableCell::new("c")]);
        table.row([TableCell::new("a"), TableCell::new(""), TableCell::new("")]);
        assert_eq!(table.render(TextStyle::PLAIN, ""), "A  B  C\na     c\na\n");
    }

    #[test]
    fn control_characters_in_untrusted_text_are_replaced() {
        let mut table = Table::new(["NAME"]);
        table.row([TableCell::new("a\x1b[2J\nb")]);
        assert_eq!(table.render(TextStyle::PLAIN, ""), "NAME\na [2J b\n");
    }

    #[test]
    fn wide_and_combining_characters_keep_columns_aligned() {
        let mut table = Table::new(["A", "B"]);
        for text in ["日本", "e\u{301}", "abcd"] {
            table.row([TableCell::new(text), TableCell::new(1)]);
        }
        let expected = "A     B\n日本  1\ne\u{301}     1\nabcd  1\n";
        assert_eq!(table.render(TextStyle::PLAIN, ""), expected);
    }

    #[test]
    fn colors_do_not_change_alignment_or_color_padding() {
        let mut table = Table::new(["A", "STATUS", "C"]);
        table.row([TableCell::new("a"), TableCell::status("OK"), TableCell::new("")]);
        table.row([TableCell::new(""), TableCell::status("FAILED"), TableCell::new("c")]);
        assert_eq!(
            table.render(TextStyle::COLORED, ""),
            "\x1b[2mA\x1b[0m  \x1b[2mSTATUS\x1b[0m  \x1b[2mC\x1b[0m\n\
             a  \x1b[32mOK\x1b[0m\n\x20  \x1b[1;31mFAILED\x1b[0m  c\n"
        );
    }

    #[test]
    fn a_table_without_rows_prints_its_empty_message() {
        assert_eq!(Table::new(["ID"]).render(TextStyle::PLAIN, "no executions"), "no executions\n");
    }
}
