//! Colors of stdout and stderr, and untrusted text on one line.

use std::io::IsTerminal;

use super::escape::is_acting;

/// Returns untrusted text on one line, with control characters replaced by spaces.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if is_acting(c) { ' ' } else { c }).collect()
}

/// Whether output is colored, with functions that apply colors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextStyle {
    coloured: bool,
}

/// Returns the style for stderr: color on a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`.
pub(crate) fn of_stderr() -> TextStyle {
    TextStyle { coloured: std::io::stderr().is_terminal() && is_wanted() }
}

/// Returns the style for stdout: color on a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`.
pub(crate) fn of_stdout() -> TextStyle {
    TextStyle { coloured: std::io::stdout().is_terminal() && is_wanted() }
}

fn is_wanted() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !unwanted
}

impl TextStyle {
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { coloured: false };
    #[cfg(test)]
    pub(crate) const COLORED: Self = Self { coloured: true };

    pub(crate) fn is_coloured(self) -> bool {
        self.coloured
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    pub(crate) fn warn(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
