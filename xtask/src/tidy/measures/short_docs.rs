//! Doc comments that are too short to say more than the name of their item.

use super::{Measured, Source};

/// Greatest number of words of a short doc comment.
pub(super) const WORDS_MAX: usize = 4;

/// Counts short doc comments per 1,000 comments, rounded up.
pub(super) fn measure<'s>(sources: impl Iterator<Item = &'s Source<'s>>) -> Measured {
    let (mut all, mut details) = (0, Vec::new());
    for source in sources {
        for comment in comments(source.code) {
            all += 1;
            if comment.is_doc && comment.words <= WORDS_MAX {
                details.push(format!("{}:{}: {}", source.path, comment.line, comment.text));
            }
        }
    }
    Measured { count: (details.len() * 1_000).div_ceil(all.max(1)), details }
}

/// Adjacent comment lines of one kind.
struct Comment<'a> {
    line: usize,
    is_doc: bool,
    words: usize,
    /// Text of the first line.
    text: &'a str,
}

/// Returns the comments that stand on lines of their own.
fn comments(code: &str) -> Vec<Comment<'_>> {
    let mut found: Vec<Comment<'_>> = Vec::new();
    let mut before = None;
    for (line, written) in (1..).zip(code.lines()) {
        let comment = marked(written.trim_start());
        let mark = comment.map(|(mark, _)| mark);
        if let Some((mark, text)) = comment {
            let words = text.split_whitespace().count();
            match found.last_mut() {
                Some(last) if before == Some(mark) => last.words += words,
                _ => found.push(Comment { line, is_doc: mark != "//", words, text: text.trim() }),
            }
        }
        before = mark;
    }
    found
}

/// Returns the mark and the text of a comment line.
fn marked(line: &str) -> Option<(&'static str, &str)> {
    let marks = ["///", "//!", "//"].into_iter();
    marks.filter_map(|mark| Some((mark, line.strip_prefix(mark)?))).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(code: &str) -> (usize, Vec<String>) {
        let source = Source { path: "a.rs", name: "a.rs", code };
        let measured = measure(std::iter::once(&source));
        (measured.count, measured.details)
    }

    #[test]
    fn short_doc_comments_are_counted_by_block() {
        let code = "//! Leases of workers here.\n\n/// Ends the lease\n/// of a worker.\nfn a() {}\n\
                    // Why.\n/// End.\nfn b() {}\n";
        let listed = ["a.rs:1: Leases of workers here.", "a.rs:7: End."];
        assert_eq!(measured(code), (500, listed.map(str::to_owned).to_vec()));
    }

    #[test]
    fn code_without_comments_has_no_share() {
        assert_eq!(measured("fn a() {}\n"), (0, Vec::new()));
        assert_eq!(measured("// a\n\n// b\n\n/// c\nfn c() {}\n").0, 334);
    }
}
