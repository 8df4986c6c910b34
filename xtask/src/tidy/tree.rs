//! The files the checks look at, by path from the root of the workspace.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Folders that hold nothing of ours.
const SKIPPED: [&str; 4] = ["target", "node_modules", "noetl-data", "test-data"];

/// Where the checks look, besides the single files in [`FILES`].
const FOLDERS: [&str; 5] = ["crates", "bench", "xtask", "examples", "docs/errors"];
const FILES: [&str; 2] = ["Cargo.lock", "deny.toml"];

/// Paths and texts.
#[derive(Debug, Default)]
pub(super) struct Tree {
    files: BTreeMap<String, String>,
    folders: BTreeSet<String>,
}

impl Tree {
    /// Reads everything the checks look at.
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let mut tree = Self::default();
        for file in FILES {
            tree.read_file(root, file)?;
        }
        for folder in FOLDERS {
            if root.join(folder).is_dir() {
                tree.read_folder(root, folder)?;
            }
        }
        Ok(tree)
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        Self { files: files.iter().map(owned).collect(), folders: BTreeSet::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// The text of a file; empty when there is none.
    pub(super) fn text(&self, path: &str) -> &str {
        self.files.get(path).map_or("", String::as_str)
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    pub(super) fn has_folder(&self, path: &str) -> bool {
        self.folders.contains(path)
    }

    /// Path and text of every file whose path ends so.
    pub(super) fn ending<'a>(&'a self, end: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let files = self.files.iter().filter(move |(path, _)| path.ends_with(end));
        files.map(|(path, text)| (path.as_str(), text.as_str()))
    }

    fn read_folder(&mut self, root: &Path, folder: &str) -> Result<(), String> {
        self.folders.insert(folder.to_owned());
        let entries = fs::read_dir(root.join(folder))
            .map_err(|error| format!("could not list {folder}: {error}"))?;
        for entry in entries {
            let entry = entry.map_err(|error| format!("could not list {folder}: {error}"))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{folder}/{name}");
            let kind =
                entry.file_type().map_err(|error| format!("could not look at {path}: {error}"))?;
            if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
                self.read_folder(root, &path)?;
            } else if kind.is_file() {
                self.read_file(root, &path)?;
            }
        }
        Ok(())
    }

    /// Files that are not text have nothing the checks could read.
    fn read_file(&mut self, root: &Path, path: &str) -> Result<(), String> {
        let bytes =
            fs::read(root.join(path)).map_err(|error| format!("could not read {path}: {error}"))?;
        if let Ok(text) = String::from_utf8(bytes) {
            self.files.insert(path.to_owned(), text);
        }
        Ok(())
    }
}
