//! Reads which paths of its own crate a Rust file names.
//!
//! Knows `use` trees, paths in code, visibilities, inline modules, and attributes that limit an item to
//! tests. It does not expand macros, and it reads a path relative to an inline module only with `super`.

use super::super::scan;

/// A path that code names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// Line number, from 1.
    pub(super) line: usize,
    /// Segments from the root of the crate, such as `["journal", "Journal"]`.
    pub(super) path: Vec<String>,
    /// Name that a `use` gives it. `None` for a path in code.
    pub(super) name: Option<String>,
    /// Whether it is a `use` that others can import from here.
    pub(super) is_reexport: bool,
}

/// A file, read.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) imports: Vec<Import>,
    /// Modules in files of their own that the file declares, without those of tests.
    pub(super) modules: Vec<String>,
    /// Modules in files of their own that only tests have.
    pub(super) test_modules: Vec<String>,
    /// Macros that the file defines.
    pub(super) macros: Vec<String>,
    /// Words of the code outside `use` items.
    pub(super) words: Vec<String>,
}

/// Reads the code of the module at `module`, which is empty for the root of the crate.
pub(super) fn read(module: &[&str], code: &str) -> File {
    let code = scan::only_code(code);
    let tokens = tokens(&code);
    let mut reader = Reader {
        tokens: &tokens,
        at: 0,
        depth: 0,
        module,
        inline: Vec::new(),
        file: File::default(),
    };
    while reader.at < tokens.len() {
        reader.step();
    }
    reader.file
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    /// `::`
    Separator,
    Mark(char),
}

fn tokens(code: &str) -> Vec<(usize, Token<'_>)> {
    let mut found = Vec::new();
    for (line, mut rest) in (1..).zip(code.lines()) {
        loop {
            rest = rest.trim_start();
            let Some(first) = rest.chars().next() else { break };
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            // A raw name is a name.
            if let Some(name) = rest.strip_prefix("r#")
                && name.starts_with(char::is_alphabetic)
            {
                rest = name;
                continue;
            }
            // A variable of a macro names no module.
            if let Some(name) = rest.strip_prefix('$')
                && !name.starts_with("crate")
            {
                rest = name.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
                continue;
            }
            let (token, length) = match first {
                _ if word > 0 => (Token::Word(&rest[..word]), word),
                _ if rest.starts_with("::") => (Token::Separator, 2),
                mark => (Token::Mark(mark), mark.len_utf8()),
            };
            found.push((line, token));
            rest = &rest[length..];
        }
    }
    found
}

struct Reader<'a> {
    tokens: &'a [(usize, Token<'a>)],
    at: usize,
    /// Number of open braces.
    depth: usize,
    module: &'a [&'a str],
    /// Depth of the braces inside each open inline module.
    inline: Vec<usize>,
    file: File,
}

impl<'a> Reader<'a> {
    /// Reads one item, path, or token.
    fn step(&mut self) {
        let (line, token) = self.tokens[self.at];
        match token {
            Token::Mark('#') if self.is_test_attribute() => return self.skip_item(),
            Token::Mark('{') => self.depth += 1,
            Token::Mark('}') => {
                self.depth = self.depth.saturating_sub(1);
                while self.inline.last().is_some_and(|depth| *depth > self.depth) {
                    self.inline.pop();
                }
            }
            // `pub(in crate::a)` imports nothing.
            Token::Word("in") if self.before(1) == Some(Token::Mark('(')) => {
                return self.skip_past(')');
            }
            Token::Word("use") => return self.use_item(),
            Token::Word("mod") => self.module_item(),
            Token::Word("macro_rules") => {
                if let (Some(Token::Mark('!')), Some(Token::Word(name))) =
                    (self.peek(1), self.peek(2))
                {
                    self.file.macros.push(name.to_owned());
                }
            }
            Token::Word(_) if self.before(1) != Some(Token::Separator) => {
                if self.peek(1) == Some(Token::Separator) {
                    let segments = self.segments();
                    self.import(line, &segments, None, false);
                    return;
                }
            }
            Token::Word(_) | Token::Separator | Token::Mark(_) => {}
        }
        if let Token::Word(word) = token {
            self.file.words.push(word.to_owned());
        }
        self.at += 1;
    }

    fn peek(&self, ahead: usize) -> Option<Token<'a>> {
        self.tokens.get(self.at + ahead).map(|(_, token)| *token)
    }

    fn before(&self, back: usize) -> Option<Token<'a>> {
        self.at.checked_sub(back).map(|at| self.tokens[at].1)
    }

    /// Reads the segments of a path in code and leaves the reader behind them.
    fn segments(&mut self) -> Vec<&'a str> {
        let mut segments = Vec::new();
        while let Some(Token::Word(word)) = self.peek(0) {
            segments.push(word);
            self.file.words.push(word.to_owned());
            self.at += 1;
            if self.peek(0) != Some(Token::Separator) {
                break;
            }
            self.at += 1;
        }
        segments
    }

    /// Returns `true` at an attribute such as `#[cfg(test)]` or `#[cfg(all(test, unix))]`.
    fn is_test_attribute(&self) -> bool {
        let opens = [Token::Mark('['), Token::Word("cfg"), Token::Mark('(')];
        if !(0..3).all(|ahead| self.peek(ahead + 1) == Some(opens[ahead])) {
            return false;
        }
        let rest = self.tokens[self.at..].iter().map(|(_, token)| *token);
        let words: Vec<Token<'_>> = rest.take_while(|token| *token != Token::Mark(']')).collect();
        words.contains(&Token::Word("test")) && !words.contains(&Token::Word("not"))
    }

    /// Skips an item with its attributes: to its semicolon, or behind its braces.
    fn skip_item(&mut self) {
        const ITEMS: [&str; 9] =
            ["fn", "struct", "enum", "impl", "trait", "mod", "const", "static", "type"];
        let mut open = 0_usize;
        let (mut is_use, mut is_item) = (false, false);
        while let Some(token) = self.peek(0) {
            if let (Token::Word("mod"), Some(Token::Word(name)), Some(Token::Mark(';'))) =
                (token, self.peek(1), self.peek(2))
            {
                self.file.test_modules.push(name.to_owned());
            }
            self.at += 1;
            match token {
                Token::Word("use") if open == 0 => is_use = true,
                Token::Word(word) if open == 0 && ITEMS.contains(&word) => is_item = true,
                Token::Mark('(' | '[' | '{') => open += 1,
                Token::Mark(close @ (')' | ']' | '}')) => {
                    open = open.saturating_sub(1);
                    if open == 0 && close == '}' && !is_use {
                        return;
                    }
                }
                Token::Mark(';') if open == 0 => return,
                // The end of a field or variant; in an item, it may separate generic parameters.
                Token::Mark(',') if open == 0 && !is_item => return,
                Token::Word(_) | Token::Separator | Token::Mark(_) => {}
            }
        }
    }

    fn skip_past(&mut self, mark: char) {
        while self.peek(0).is_some_and(|token| token != Token::Mark(mark)) {
            self.at += 1;
        }
        self.at += 1;
    }

    /// Notes a module: one in a file of its own, or an inline one, whose paths are relative to it.
    fn module_item(&mut self) {
        match (self.peek(1), self.peek(2)) {
            (Some(Token::Word(name)), Some(Token::Mark(';'))) if self.inline.is_empty() => {
                self.file.modules.push(name.to_owned());
                // A declaration is no use of the name.
                self.at += 1;
            }
            (Some(Token::Word(_)), Some(Token::Mark('{'))) => self.inline.push(self.depth + 1),
            _ => {}
        }
    }

    fn use_item(&mut self) {
        let is_reexport = matches!(self.before(1), Some(Token::Word("pub") | Token::Mark(')')));
        self.at += 1;
        // `impl Trait + use<'a>` is no import.
        if self.peek(0) == Some(Token::Mark('<')) {
            return;
        }
        self.tree(&mut Vec::new(), is_reexport);
    }

    /// Reads a `use` tree below a prefix and leaves the reader behind it.
    fn tree(&mut self, prefix: &mut Vec<&'a str>, is_reexport: bool) {
        let outer = prefix.len();
        let mut last = None;
        while let Some((line, token)) = self.tokens.get(self.at).copied() {
            match token {
                Token::Word("as") => {
                    self.at += 1;
                    if let (Some(Token::Word(alias)), Some(line)) = (self.peek(0), last.take()) {
                        self.import(line, prefix, Some(alias), is_reexport);
                    }
                }
                Token::Word(word) => {
                    prefix.push(word);
                    last = Some(line);
                }
                Token::Mark('*') => {
                    prefix.push("*");
                    last = Some(line);
                }
                Token::Mark('{') => {
                    last = None;
                    self.at += 1;
                    while self.at < self.tokens.len() && self.peek(0) != Some(Token::Mark('}')) {
                        let before = self.at;
                        self.tree(prefix, is_reexport);
                        // Also passes a mark that begins no tree, such as that of a macro.
                        if self.peek(0) == Some(Token::Mark(',')) || self.at == before {
                            self.at += 1;
                        }
                    }
                }
                Token::Separator => {}
                Token::Mark(_) => break,
            }
            self.at += 1;
        }
        if let Some(line) = last {
            // `a::{self}` imports `a`.
            if prefix.len() > 1 && prefix.last() == Some(&"self") {
                prefix.pop();
            }
            let name = prefix.last().copied();
            self.import(line, prefix, name, is_reexport);
        }
        prefix.truncate(outer);
    }

    /// Notes a path, if it begins at the root of the crate.
    fn import(&mut self, line: usize, segments: &[&str], name: Option<&str>, is_reexport: bool) {
        let depth = self.module.len() + self.inline.len();
        let up = segments.iter().take_while(|segment| **segment == "super").count();
        let path = match segments.first() {
            Some(&"crate") => &segments[1..],
            Some(&"super") if up == depth => &segments[up..],
            Some(&"self") if depth == 0 => &segments[1..],
            Some(&("super" | "self")) | None => return,
            // Elsewhere than at the root, other paths begin at another crate or below the module.
            Some(_) if depth == 0 => segments,
            Some(_) => return,
        };
        if path.is_empty() {
            return;
        }
        let path = path.iter().map(|segment| (*segment).to_owned()).collect();
        let name = name.map(str::to_owned);
        self.file.imports.push(Import { line, path, name, is_reexport });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(module: &[&str], code: &str) -> Vec<(usize, String)> {
        let imports = read(module, code).imports.into_iter();
        imports.map(|import| (import.line, import.path.join("::"))).collect()
    }

    fn one(module: &[&str], code: &str) -> Vec<String> {
        paths(module, code).into_iter().map(|(_, path)| path).collect()
    }

    #[test]
    fn use_trees_are_followed_to_their_leaves() {
        let code = "use std::fmt;\nuse crate::a::B;\npub use crate::{\n    c::{self, D, e::*},\n    f as g,\n};\n";
        let expected = [(2, "a::B"), (4, "c"), (4, "c::D"), (4, "c::e::*"), (5, "f")];
        assert_eq!(paths(&["m"], code), expected.map(|(line, path)| (line, path.to_owned())));
        let imports = read(&["m"], code).imports;
        let names: Vec<_> = imports.iter().map(|import| import.name.as_deref().unwrap()).collect();
        assert_eq!(names, ["B", "c", "D", "*", "g"]);
        let reexports: Vec<_> = imports.iter().map(|import| import.is_reexport).collect();
        assert_eq!(reexports, [false, true, true, true, true]);
    }

    #[test]
    fn raw_names_and_macro_variables_in_a_tree_are_passed() {
        assert_eq!(one(&["m"], "use crate::{r#loop::A, $b, c};\n"), ["loop::A", "c"]);
        assert_eq!(one(&["m"], "use crate::{"), [""; 0]);
    }

    #[test]
    fn paths_in_code_count() {
        let code = "fn a() -> crate::b::C {\n    std::mem::take(crate::d::e::<F>());\n    $crate::g!()\n}\n";
        assert_eq!(one(&["m"], code), ["b::C", "d::e", "g"]);
    }

    #[test]
    fn comments_literals_and_visibilities_do_not_count() {
        let code = "// crate::a\nconst T: &str = \"crate::b\";\npub(in crate::c) fn d() {}\n";
        assert_eq!(one(&["m"], code), [""; 0]);
    }

    #[test]
    fn super_counts_where_it_reaches_the_root() {
        assert_eq!(one(&["m"], "use super::a::B;"), ["a::B"]);
        assert_eq!(one(&["m", "n"], "use super::a::B;"), [""; 0]);
        assert_eq!(one(&["m", "n"], "use super::super::{a::B, C};"), ["a::B", "C"]);
        let inline =
            "mod n {\n    use super::a::B;\n    use super::super::c::D;\n}\nuse super::e::F;\n";
        assert_eq!(one(&["m"], inline), ["c::D", "e::F"]);
    }

    #[test]
    fn relative_paths_count_at_the_root_only() {
        assert_eq!(one(&[], "pub use a::B;\nuse self::c::D;\n"), ["a::B", "c::D"]);
        assert_eq!(one(&["m"], "use a::B;\nuse self::c::D;\n"), [""; 0]);
    }

    #[test]
    fn items_of_tests_do_not_count() {
        let code = "#[cfg(test)]\nuse crate::{a::B, c};\n#[cfg(all(test, unix))]\nmod d;\n\
                    #[cfg(test)]\n#[allow(unused)]\nfn e<A, B>(f: [u8; 2]) { crate::g::h() }\n\
                    #[cfg(not(test))]\nuse crate::i;\nmod j;\n";
        assert_eq!(one(&["m"], code), ["i"]);
        let file = read(&[], code);
        assert_eq!((file.modules, file.test_modules), (vec!["j".to_owned()], vec!["d".to_owned()]));
    }

    #[test]
    fn macros_and_words_are_noted() {
        let file = read(&[], "use a::B;\nmacro_rules! c {\n    () => { d };\n}\n");
        assert_eq!(file.macros, ["c"]);
        assert!(file.words.contains(&"d".to_owned()) && !file.words.contains(&"B".to_owned()));
        assert!(!read(&[], "mod e;\npub use e::e;\n").words.contains(&"e".to_owned()));
    }
}
