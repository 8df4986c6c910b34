//! Formats tables with aligned columns and complete IDs.

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
    let lines = || std::iter::once(head.as_slice()).chain(rows.iter().map(AsRef::as_ref));
    let width = |column: usize| {
        let cells = lines().filter_map(|row| row.get(column));
        cells.map(|cell| cell.text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    lines().map(|row| line(row, &widths, style)).collect()
}

fn line(cells: &[TableCell], widths: &[usize], style: TextStyle) -> String {
    let mut text = String::new();
    let mut blanks = 0;
    for (cell, width) in cells.iter().zip(widths) {
        // Add padding only before the next nonempty cell, so that lines have no trailing spaces.
        if !cell.text.is_empty() {
            text.push_str(&" ".repeat(std::mem::take(&mut blanks)));
            text.push_str(&cell.tone.paint(style, &cell.text));
        }
        blanks += width.saturating_sub(cell.text.chars().count()) + 2;
    }
    text.push('\n');
    text
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
    fn columns_are_in_line_and_ids_whole() {
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
    fn a_line_has_no_blanks_at_its_end() {
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
    fn a_table_without_rows_is_a_sentence() {
        assert_eq!(Table::new(["ID"]).render(TextStyle::PLAIN, "no executions"), "no executions\n");
    }
}
