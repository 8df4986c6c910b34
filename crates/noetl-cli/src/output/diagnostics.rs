//! Formats diagnostics with the source line they refer to.

use noetl_playbook::{Diagnostic, Severity};

use super::style::{TextStyle, one_line};

/// Maximum number of characters of a source line to show around a diagnostic.
const WIDTH: usize = 100;

/// Formats the diagnostics of one document, in the given order.
pub(crate) fn render(
    name: &str,
    source: &str,
    diagnostics: &[Diagnostic],
    style: TextStyle,
) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let mut text = String::new();
    for diagnostic in diagnostics {
        let label = match diagnostic.severity {
            Severity::Error => style.bad(&format!("error[{}]", diagnostic.code)),
            Severity::Warning => style.warn(&format!("warning[{}]", diagnostic.code)),
        };
        let (line, column) = (diagnostic.line, diagnostic.column);
        let message = one_line(&diagnostic.message);
        text.push_str(&format!("{name}:{line}:{column}: {label}: {message}\n"));
        if let Some(shown) = lines.get(line.wrapping_sub(1)) {
            text.push_str(&excerpt(line, column, shown, style));
        }
        if !diagnostic.path.is_empty() {
            text.push_str(&format!("  {} {}\n", style.faint("at"), one_line(&diagnostic.path)));
        }
        if let Some(help) = &diagnostic.help {
            text.push_str(&format!("  {} {}\n", style.good("help:"), one_line(help)));
        }
    }
    text
}

/// Formats the number of errors and warnings, such as `1 error, 2 warnings`, or `ok` for none.
pub(crate) fn count(diagnostics: &[Diagnostic]) -> String {
    let errors =
        diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
    let warnings = diagnostics.len() - errors;
    let words = |number: usize, word: &str| match number {
        1 => format!("1 {word}"),
        _ => format!("{number} {word}s"),
    };
    match (errors, warnings) {
        (0, 0) => "ok".to_owned(),
        (0, _) => words(warnings, "warning"),
        (_, 0) => words(errors, "error"),
        _ => format!("{}, {}", words(errors, "error"), words(warnings, "warning")),
    }
}

fn excerpt(line: usize, column: usize, shown: &str, style: TextStyle) -> String {
    let start = column.saturating_sub(1).saturating_sub(WIDTH / 2);
    let part: String = shown.chars().skip(start).take(WIDTH).collect();
    let part = one_line(&part);
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    let arrow = " ".repeat(column.saturating_sub(1).saturating_sub(start));
    let bar = style.faint("|");
    format!("  {} {bar} {part}\n  {margin} {bar} {arrow}{}\n", style.faint(&number), style.bad("^"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_points_at_its_column() {
        let diagnostics = [Diagnostic {
            severity: Severity::Error,
            code: "E011",
            line: 2,
            column: 9,
            path: "workflow[0].tool.kind".into(),
            message: "unknown tool kind 'pyhton'".into(),
            help: Some("did you mean 'python'?".into()),
        }];
        let text = render("a.yaml", "tool:\n  kind: pyhton\n", &diagnostics, TextStyle::PLAIN);
        assert_eq!(
            text,
            "a.yaml:2:9: error[E011]: unknown tool kind 'pyhton'\n  \
             2 |   kind: pyhton\n    |         ^\n  \
             at workflow[0].tool.kind\n  help: did you mean 'python'?\n"
        );
    }

    #[test]
    fn a_diagnostic_past_the_end_of_the_document_has_no_excerpt() {
        let diagnostics = [Diagnostic {
            severity: Severity::Error,
            code: "E004",
            line: 9,
            column: 1,
            path: String::new(),
            message: "workflow is missing".into(),
            help: None,
        }];
        let text = render("a.yaml", "x: 1\n", &diagnostics, TextStyle::PLAIN);
        assert_eq!(text, "a.yaml:9:1: error[E004]: workflow is missing\n");
        assert_eq!(count(&diagnostics), "1 error");
    }
}
