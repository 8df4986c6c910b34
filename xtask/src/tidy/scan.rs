//! Finds the comments and string literals of a Rust file.
//!
//! Knows just enough of the language not to mistake one for the other: escapes, raw strings,
//! nested block comments, characters and lifetimes. It never fails; what is not Rust gives
//! whatever it looks like.

/// A comment or a string literal, without its marks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) kind: Kind,
    /// Where it begins, from 1.
    pub(super) line: usize,
    pub(super) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Comment,
    Literal,
}

/// The string literals of `source`.
pub(super) fn literals(source: &str) -> impl Iterator<Item = Piece> {
    pieces(source).into_iter().filter(|piece| piece.kind == Kind::Literal)
}

/// Returns `source` with every comment, literal, and character replaced by spaces.
pub(super) fn only_code(source: &str) -> String {
    let mut scanner = Scanner { rest: source, line: 1, found: Vec::new() };
    let mut code = String::with_capacity(source.len());
    loop {
        let (before, found) = (scanner.rest, scanner.found.len());
        if !scanner.step() {
            return code;
        }
        let passed = &before[..before.len() - scanner.rest.len()];
        let is_character = passed.len() > 1 && passed.starts_with('\'');
        if scanner.found.len() == found && !is_character {
            code.push_str(passed);
        } else {
            code.extend(passed.chars().map(|c| if c == '\n' { c } else { ' ' }));
        }
    }
}

/// The lines of the comments of `source`: number and text.
pub(super) fn comment_lines(source: &str) -> impl Iterator<Item = (usize, String)> {
    let comments = pieces(source).into_iter().filter(|piece| piece.kind == Kind::Comment);
    comments.flat_map(|piece| {
        let lines: Vec<String> = piece.text.lines().map(str::to_owned).collect();
        (piece.line..).zip(lines)
    })
}

/// The line, from 1, on which the inline test module begins; one past the end when there is none.
///
/// By convention it is the last thing in a file.
pub(super) fn tests_begin(source: &str) -> usize {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let begins = |at: usize| {
        let mut rest = lines[at + 1..].iter().skip_while(|line| line.starts_with("#["));
        lines[at] == "#[cfg(test)]"
            && rest.next().is_some_and(|line| line.contains("mod ") && line.ends_with('{'))
    };
    let at = (0..lines.len()).find(|&at| begins(at));
    at.unwrap_or(lines.len()) + 1
}

/// Whether a file holds nothing but tests.
pub(super) fn only_tests(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs")
}

fn pieces(source: &str) -> Vec<Piece> {
    let mut scanner = Scanner { rest: source, line: 1, found: Vec::new() };
    while scanner.step() {}
    scanner.found
}

struct Scanner<'a> {
    rest: &'a str,
    line: usize,
    found: Vec<Piece>,
}

impl Scanner<'_> {
    /// Takes one comment, literal, word or character; false at the end.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else {
            return false;
        };
        if self.rest.starts_with("//") {
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.keep(Kind::Comment, 2, end, end);
        } else if self.rest.starts_with("/*") {
            let end = block_end(self.rest);
            self.keep(Kind::Comment, 2, end - 2, end);
        } else if first == '"' {
            let end = quoted_end(self.rest);
            self.keep(Kind::Literal, 1, end - 1, end);
        } else if first == '\'' {
            self.skip(character_end(self.rest));
        } else if first.is_alphanumeric() || first == '_' {
            self.word();
        } else {
            self.skip(first.len_utf8());
        }
        true
    }

    /// A word, or the mark before a raw string: `r"`, `r#"`, `br##"`.
    fn word(&mut self) {
        let end =
            self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let hashes = self.rest[end..].bytes().take_while(|&b| b == b'#').count();
        let open = end + hashes + 1;
        let raw = matches!(&self.rest[..end], "r" | "br" | "cr");
        if !raw || !self.rest[end + hashes..].starts_with('"') {
            self.skip(end);
            return;
        }
        let close = format!("\"{}", "#".repeat(hashes));
        let text_end = self.rest[open..].find(&close).map_or(self.rest.len(), |at| open + at);
        let end = (text_end + close.len()).min(self.rest.len());
        self.keep(Kind::Literal, open, text_end, end);
    }

    fn keep(&mut self, kind: Kind, from: usize, to: usize, end: usize) {
        let text = self.rest.get(from..to).unwrap_or_default().to_owned();
        let line = self.line;
        self.found.push(Piece { kind, line, text });
        self.skip(end);
    }

    fn skip(&mut self, bytes: usize) {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.matches('\n').count();
        self.rest = rest;
    }
}

/// The length of a block comment, which may hold others.
fn block_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The length of a string literal with its quotes.
fn quoted_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a character literal with its quotes, or of a lifetime's mark alone.
fn character_end(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            let close = chars.skip(1).find(|&(_, c)| c == '\'');
            close.map_or(text.len(), |(at, _)| at + 1)
        }
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 1,
        },
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Vec<(Kind, usize, String)> {
        let pieces = pieces(source).into_iter();
        pieces.map(|p| (p.kind, p.line, p.text)).collect()
    }

    #[test]
    fn comments_and_literals_are_distinguished() {
        let source = "// one \"two\"\nlet s = \"// three\"; /* four\n /* five */ */ 'x';";
        let expected = [
            (Kind::Comment, 1, " one \"two\"".to_owned()),
            (Kind::Literal, 2, "// three".to_owned()),
            (Kind::Comment, 2, " four\n /* five */ ".to_owned()),
        ];
        assert_eq!(found(source), expected);
    }

    #[test]
    fn quotes_inside_literals_do_not_end_them() {
        let source = "f(\"a \\\" b\", r#\"c \" d\"#, b\"e\", '\"', '\\'', \"f\");";
        let texts: Vec<String> = found(source).into_iter().map(|(_, _, text)| text).collect();
        assert_eq!(texts, ["a \\\" b", "c \" d", "e", "f"]);
    }

    #[test]
    fn lifetimes_are_no_characters() {
        let source = "fn f<'a>(s: &'a str) -> &'static str { \"g\" }";
        assert_eq!(found(source), [(Kind::Literal, 1, "g".to_owned())]);
    }

    #[test]
    fn unfinished_text_ends_with_the_file() {
        for source in ["\"open", "/* open", "r#\"open", "'", "'\\", "/*", "r#", "\"é"] {
            pieces(source);
        }
    }

    #[test]
    fn code_keeps_its_lines_without_comments_and_literals() {
        let source = "let a = \"{\n\"; // }\nlet b: &'a u8 = '{';\n/* x */ c";
        assert_eq!(only_code(source), "let a =   \n ;     \nlet b: &'a u8 =    ;\n        c");
    }

    #[test]
    fn the_test_module_is_found_by_its_attribute() {
        let source = "fn f() {}\n\n#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(tests_begin(source), 3);
        let allowed = "fn f() {}\n#[cfg(test)]\n#[allow(unused)]\nmod tests {\n}\n";
        assert_eq!(tests_begin(allowed), 2);
        assert_eq!(tests_begin("#[cfg(test)]\nmod tests;\nfn f() {}\n"), 4);
        assert_eq!(tests_begin("#[cfg(test)]\nfn only_tests_use_it() {\n}\n"), 4);
    }
}
