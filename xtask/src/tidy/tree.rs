//! The files the checks look at, by path from the root of the workspace.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Folders that hold nothing of ours.
const SKIPPED: [&str; 4] = ["target", "node_modules", "noetl-data", "test-data"];

/// Where the checks look, besides the single files in [`FILES`] and the pages at the root.
const FOLDERS: [&str; 5] = ["crates", "bench", "xtask", "examples", "docs"];
const FILES: [&str; 2] = ["Cargo.lock", "deny.toml"];

/// Folders that pages link to and no check reads.
const LINKED: [&str; 3] = ["deploy", "scripts", "web"];

/// Sources of the web UI, whose text is checked like that of pages.
const UI: &str = "web/src/";

/// Paths and texts.
#[derive(Debug, Default)]
pub(super) struct Tree {
    files: BTreeMap<String, String>,
    folders: BTreeSet<String>,
    /// Files without a text: pictures, and what only links lead to.
    others: BTreeSet<String>,
}

impl Tree {
    /// Reads everything the checks look at.
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let mut tree = Self::default();
        for file in FILES {
            tree.read_file(root, file)?;
        }
        for name in names(root, "")? {
            if !root.join(&name).is_file() {
                continue;
            } else if name.ends_with(".md") {
                tree.read_file(root, &name)?;
            } else {
                tree.others.insert(name);
            }
        }
        for folder in FOLDERS.into_iter().chain(LINKED) {
            if root.join(folder).is_dir() {
                tree.read_folder(root, folder)?;
            }
        }
        Ok(tree)
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        let parents = files
            .iter()
            .flat_map(|(path, _)| path.match_indices('/').map(|(end, _)| path[..end].to_owned()));
        let folders = parents.collect();
        Self { files: files.iter().map(owned).collect(), folders, others: BTreeSet::new() }
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

    /// Whether a file, text or not, or a folder has this path.
    pub(super) fn is_there(&self, path: &str) -> bool {
        path.is_empty() || self.has(path) || self.has_folder(path) || self.others.contains(path)
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
        for name in names(root, folder)? {
            let path = format!("{folder}/{name}");
            let whole = root.join(&path);
            if whole.is_dir() && !SKIPPED.contains(&name.as_str()) {
                self.read_folder(root, &path)?;
            } else if whole.is_file()
                && LINKED.iter().any(|linked| path.starts_with(linked))
                && !path.starts_with(UI)
            {
                self.others.insert(path);
            } else if whole.is_file() {
                self.read_file(root, &path)?;
            }
        }
        Ok(())
    }

    /// Files that are not text have nothing the checks could read.
    fn read_file(&mut self, root: &Path, path: &str) -> Result<(), String> {
        let bytes =
            fs::read(root.join(path)).map_err(|error| format!("could not read {path}: {error}"))?;
        match String::from_utf8(bytes) {
            Ok(text) => drop(self.files.insert(path.to_owned(), text)),
            Err(_) => drop(self.others.insert(path.to_owned())),
        }
        Ok(())
    }
}

/// The names in a folder.
fn names(root: &Path, folder: &str) -> Result<Vec<String>, String> {
    let failed = |error| format!("could not list {folder}: {error}");
    let entries = fs::read_dir(root.join(folder)).map_err(failed)?;
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| entry.map(name).map_err(failed)).collect()
}
