//! Import cycles between the top-level modules of a crate.
//!
//! Code at the root of a crate counts as a module of the name [`ROOT`]; what the root only declares or
//! re-exports doesn't. A name that the root re-exports counts as an import of the module it comes from.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Measured, Source,
    imports::{self, File},
};

/// Name of the code at the root of a crate.
const ROOT: &str = "lib.rs";

/// Files that are the root of a crate.
const ROOT_FILES: [&str; 2] = ["lib.rs", "main.rs"];

/// Imports between two modules, each as a place and a name.
type Imports = BTreeMap<(String, String), Vec<String>>;

/// Counts the modules of a crate that import each other in circles.
pub(super) fn measure(sources: &[Source<'_>]) -> Measured {
    let imports = imports(sources);
    let circles = circles(&imports);
    let mut details = Vec::new();
    for circle in &circles {
        details
            .push(format!("circle of {}", circle.iter().copied().collect::<Vec<_>>().join(", ")));
        for ((from, to), places) in &imports {
            if circle.contains(from.as_str()) && circle.contains(to.as_str()) {
                details.push(format!("  {from} -> {to}: {}", places.join(", ")));
            }
        }
    }
    Measured { count: circles.iter().map(BTreeSet::len).sum(), details }
}

/// Returns the sets of modules of which each reaches every other.
fn circles(imports: &Imports) -> Vec<BTreeSet<&str>> {
    let modules: BTreeSet<&str> = imports.keys().map(|(from, _)| from.as_str()).collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        modules.iter().map(|module| (*module, reached(imports, module))).collect();
    let mut circles: Vec<BTreeSet<&str>> = Vec::new();
    for module in modules {
        let is_known = circles.iter().any(|circle| circle.contains(module));
        if !is_known && reached[module].contains(module) {
            let back = |other: &&str| reached.get(other).is_some_and(|to| to.contains(module));
            circles.push(reached[module].iter().copied().filter(back).collect());
        }
    }
    circles
}

/// Returns the modules that a module imports, and those that they import.
fn reached<'i>(imports: &'i Imports, module: &str) -> BTreeSet<&'i str> {
    let direct = |from: &str| {
        let from = from.to_owned();
        imports.keys().filter(move |(of, _)| *of == from).map(|(_, to)| to.as_str())
    };
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&str> = direct(module).collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(direct(next));
        }
    }
    reached
}

/// Returns the imports between the top-level modules of a crate.
fn imports(sources: &[Source<'_>]) -> Imports {
    let root =
        ROOT_FILES.iter().find_map(|name| sources.iter().find(|source| source.name == *name));
    let Some(root) = root else { return Imports::new() };
    let (root_name, root) = (root.name, imports::read(&[], root.code));
    let files: Vec<(Vec<&str>, &str, File)> = sources
        .iter()
        .filter(|source| source.name != root_name)
        .map(|source| {
            let module = module(source.name);
            let file = imports::read(&module, source.code);
            (module, source.name, file)
        })
        .filter(|(module, ..)| root.modules.iter().any(|known| known == module[0]))
        .collect();
    let names = Names::new(&root, &files);

    let mut found = Imports::new();
    let mut add = |from: &str, to: &str, place: String| {
        if from != to {
            found.entry((from.to_owned(), to.to_owned())).or_default().push(place);
        }
    };
    for import in root.imports.iter().filter(|import| !import.is_reexport) {
        if let Some(to) = names.modules.get(import.path[0].as_str()) {
            add(ROOT, to, format!("{root_name}:{} {}", import.line, import.path.join("::")));
        }
    }
    // Code at the root also uses what the root re-exports.
    for (name, to) in
        names.exported.iter().filter(|(name, _)| root.words.iter().any(|word| word == *name))
    {
        if let Some(to) = to {
            add(ROOT, to, format!("{root_name} {name}"));
        }
    }
    for (module, name, file) in files.iter().filter(|(module, ..)| !is_for_tests(module, &files)) {
        for import in &file.imports {
            if let Some(to) = names.origin(&import.path[0]) {
                add(module[0], to, format!("{name}:{} {}", import.line, import.path.join("::")));
            }
        }
    }
    found
}

/// Names at the root of a crate.
struct Names<'f> {
    modules: BTreeSet<&'f str>,
    /// Module that each name used at the root comes from. `None` for names of other crates.
    exported: BTreeMap<&'f str, Option<&'f str>>,
    /// Modules whose names the root imports all.
    globs: Vec<&'f str>,
    /// Module that defines each macro.
    macros: BTreeMap<&'f str, &'f str>,
    /// Words of each module, to find the one that a name of a glob import comes from.
    words: BTreeMap<&'f str, BTreeSet<&'f str>>,
}

impl<'f> Names<'f> {
    fn new(root: &'f File, files: &'f [(Vec<&'f str>, &'f str, File)]) -> Self {
        let modules: BTreeSet<&str> = root.modules.iter().map(String::as_str).collect();
        let (mut exported, mut globs) = (BTreeMap::new(), Vec::new());
        for import in &root.imports {
            let from = modules.get(import.path[0].as_str()).copied();
            match (import.name.as_deref(), from) {
                (Some("*"), Some(from)) => globs.push(from),
                (Some(name), from) => drop(exported.insert(name, from)),
                (None, _) => {}
            }
        }
        let (mut macros, mut words) = (BTreeMap::new(), BTreeMap::<&str, BTreeSet<&str>>::new());
        for (module, _, file) in files {
            macros.extend(file.macros.iter().map(|name| (name.as_str(), module[0])));
            let all = file.words.iter().map(String::as_str);
            words.entry(module[0]).or_default().extend(all);
        }
        Self { modules, exported, globs, macros, words }
    }

    /// Returns the module that a name at the root comes from, or `None` for a name of another crate.
    fn origin(&self, name: &str) -> Option<&'f str> {
        if let Some(module) = self.modules.get(name) {
            return Some(module);
        }
        if let Some(from) = self.exported.get(name) {
            return *from;
        }
        let glob = self
            .globs
            .iter()
            .find(|module| self.words.get(*module).is_some_and(|words| words.contains(name)));
        let defined = glob.or_else(|| self.macros.get(name)).copied();
        Some(defined.unwrap_or(ROOT))
    }
}

/// Returns the path of the module that a file holds, from the crate's folder `src`.
fn module(name: &str) -> Vec<&str> {
    let name = name.trim_end_matches(".rs");
    name.strip_suffix("/mod").unwrap_or(name).split('/').collect()
}

/// Returns `true` if a module, or one around it, is declared for tests only.
fn is_for_tests(module: &[&str], files: &[(Vec<&str>, &str, File)]) -> bool {
    (1..module.len()).any(|length| {
        let (outer, inner) = (&module[..length], module[length]);
        let mut declaring = files.iter().filter(|(path, ..)| path == outer);
        declaring.any(|(.., file)| file.test_modules.iter().any(|name| name == inner))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(files: &[(&str, &str)]) -> (usize, Vec<String>) {
        let sources: Vec<Source<'_>> =
            files.iter().map(|(name, code)| Source { path: name, name, code }).collect();
        let measured = measure(&sources);
        (measured.count, measured.details)
    }

    #[test]
    fn modules_that_reach_each_other_are_a_circle() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\n"),
            ("a.rs", "use crate::b::B;\n"),
            ("b/inner.rs", "fn f() { crate::c::g() }\n"),
            ("c.rs", "use super::a::A;\n"),
            ("d.rs", "use crate::a::A;\n"),
        ];
        let listed = [
            "circle of a, b, c",
            "  a -> b: a.rs:1 b::B",
            "  b -> c: b/inner.rs:1 c::g",
            "  c -> a: c.rs:1 a::A",
        ];
        assert_eq!(measured(&files), (3, listed.map(str::to_owned).to_vec()));
    }

    #[test]
    fn imports_that_point_one_way_are_no_circle() {
        let files = [
            ("main.rs", "mod a;\nmod b;\nfn main() { a::run() }\n"),
            ("a.rs", "use crate::b::B;\nuse crate::a::inner::C;\nmod inner;\n"),
            ("a/inner.rs", "use super::D;\n"),
            ("b.rs", "use other::a::A;\n"),
        ];
        assert_eq!(measured(&files).0, 0);
    }

    #[test]
    fn a_re_exported_name_counts_for_its_module() {
        let root = "mod a;\nmod b;\npub use a::A;\npub use other::O;\npub use b::*;\n";
        let used =
            |code| measured(&[("lib.rs", root), ("a.rs", "use crate::b::B;\n"), ("b.rs", code)]).0;
        assert_eq!(used("use crate::A;\n"), 2);
        assert_eq!(used("use crate::O;\n"), 0);
        let glob =
            [("lib.rs", root), ("a.rs", "use crate::B;\n"), ("b.rs", "pub struct B(crate::A);\n")];
        assert_eq!(measured(&glob).0, 2);
    }

    #[test]
    fn code_at_the_root_is_a_module() {
        let used = |root| measured(&[("lib.rs", root), ("a.rs", "use crate::Root;\n")]).0;
        assert_eq!(used("mod a;\npub struct Root;\npub use a::A;\n"), 0);
        assert_eq!(used("mod a;\npub struct Root(A);\npub use a::A;\n"), 2);
        assert_eq!(used("mod a;\nuse a::A;\npub struct Root;\n"), 2);
        assert_eq!(used("mod a;\npub struct Root(a::A);\n"), 2);
    }

    #[test]
    fn a_macro_counts_for_the_module_that_defines_it() {
        let root = "#[macro_use]\nmod a;\nmod b;\n";
        let files = [
            ("lib.rs", root),
            ("a.rs", "macro_rules! id {\n    () => { $crate::b::B };\n}\n"),
            ("b.rs", "crate::id!();\n"),
        ];
        assert_eq!(measured(&files).0, 2);
    }

    #[test]
    fn tests_do_not_count() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod checks;\n"),
            ("a.rs", "use crate::b::B;\n"),
            ("b.rs", "#[cfg(test)]\nmod harness;\n#[cfg(test)]\nuse crate::a::A;\n"),
            ("b/harness.rs", "use crate::a::A;\n"),
            ("checks.rs", "use crate::{a, b};\n"),
        ];
        assert_eq!(measured(&files).0, 0);
    }
}
