//! Every dependency a manifest names is named by the crate's code too.

use super::{Finding, tree::Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let manifests = tree.ending("/Cargo.toml");
    manifests.flat_map(|(path, text)| check_manifest(tree, path, text)).collect()
}

fn check_manifest(tree: &Tree, path: &str, text: &str) -> Vec<Finding> {
    let folder = path.trim_end_matches("Cargo.toml");
    let code: Vec<&str> = tree
        .ending(".rs")
        .filter(|(file, _)| file.strip_prefix(folder).is_some_and(is_code))
        .map(|(_, text)| text)
        .collect();
    dependencies(text)
        .filter(|(_, name)| !code.iter().any(|text| is_named(text, name)))
        .map(|(line, name)| {
            let wrong = format!("nothing in this crate names {name}");
            Finding::new(path, line, wrong, "remove the dependency")
        })
        .collect()
}

/// Whether Cargo builds a file at this path, from the crate's folder, as part of the crate.
fn is_code(path: &str) -> bool {
    path == "build.rs"
        || ["src/", "tests/", "examples/", "benches/"].iter().any(|part| path.starts_with(part))
}

/// Line and name of every dependency of a manifest, whatever it is for.
fn dependencies(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    (1..).zip(text.lines().map(str::trim)).filter_map(move |(number, line)| {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = section.rsplit(['.', '-']).next() == Some("dependencies");
            // `[dependencies.name]`
            let (before, name) = section.rsplit_once('.')?;
            return before.ends_with("dependencies").then_some((number, name));
        }
        let name = line.split(['.', ' ', '=']).next()?;
        (inside && !name.is_empty() && !name.starts_with('#')).then_some((number, name))
    })
}

/// Whether a word of the code is the dependency's name. Some leave the hyphen out: `md-5` is `md5`.
fn is_named(code: &str, dependency: &str) -> bool {
    let (with, without) = (dependency.replace('-', "_"), dependency.replace('-', ""));
    code.split(|c: char| c != '_' && !c.is_alphanumeric())
        .any(|word| word == with || word == without)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn unreferenced_files_are_findings() {
        let manifest = "[package]\nname = \"a\"\n\n[dependencies]\n# words\nserde.workspace = true\n\
                        serde_json = { version = \"1\" }\n\n[dev-dependencies]\ninsta=\"1\"\n\n\
                        [target.'cfg(unix)'.dependencies]\nrustix.workspace = true\n\n\
                        [build-dependencies.cc]\nversion = \"1\"\n\n[features]\nextra = []\n";
        let files = [("crates/a/Cargo.toml", manifest), ("crates/a/src/lib.rs", "use serde_json;")];
        let finding = |line: usize, name: &str| {
            format!(
                "crates/a/Cargo.toml:{line}: nothing in this crate names {name}; \
                 remove the dependency"
            )
        };
        let expected =
            [finding(6, "serde"), finding(10, "insta"), finding(13, "rustix"), finding(15, "cc")];
        assert_eq!(said(&files), expected);
    }

    #[test]
    fn tests_examples_benches_and_the_build_script_count() {
        let manifest = "[dependencies]\nnoetl-model = \"1\"\nmd-5 = \"1\"\ncc = \"1\"\nb = \"1\"\n";
        let files = [
            ("crates/a/Cargo.toml", manifest),
            ("crates/a/tests/it/main.rs", "use noetl_model::Event;"),
            ("crates/a/examples/e.rs", "md5::compute()"),
            ("crates/a/build.rs", "cc::Build::new()"),
            ("crates/a/benches/b.rs", "use b;"),
        ];
        assert!(said(&files).is_empty());
    }

    #[test]
    fn the_code_of_another_crate_does_not_count() {
        let files = [
            ("crates/a/Cargo.toml", "[dependencies]\nserde = \"1\"\n"),
            ("crates/a/scratch.rs", "use serde;"),
            ("crates/ab/src/lib.rs", "use serde;"),
        ];
        assert_eq!(said(&files).len(), 1);
    }
}
