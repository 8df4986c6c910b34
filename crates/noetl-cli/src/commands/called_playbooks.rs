//! Finds the playbooks that a playbook calls, among the files of its directory.
//!
//! `noetl run` starts with an empty catalog. It resolves the paths that the playbook calls by the
//! `metadata.path` of the documents in the same directory, and likewise for the playbooks found.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use noetl_playbook::Playbook;
use noetl_playbook::document::{ControlToolKind, StepWork};
use noetl_template::ValueTemplate;
use serde_json::Value;

/// Maximum number of files to read: enough for a directory of examples, but not for a whole disk.
const FILES_MAX: usize = 1000;

/// Maximum size of a file to read, in bytes.
const BYTES_MAX: u64 = 1024 * 1024;

/// Catalog paths that playbooks call.
#[derive(Default)]
struct CalledPlaybooks {
    paths: BTreeSet<String>,
    /// Whether a call has a template as its path, so that it may call any playbook.
    any: bool,
}

/// Returns the texts of the playbooks next to `file` that `playbook` calls, directly or indirectly.
pub(super) fn called_by(file: &Path, playbook: &Playbook) -> Vec<String> {
    let mut calls = CalledPlaybooks::default();
    calls.add(playbook);
    if calls.paths.is_empty() && !calls.any {
        return Vec::new();
    }
    let mut beside = documents(file);
    let mut playbooks = Vec::new();
    loop {
        let wanted = |path: &String| calls.any || calls.paths.contains(path);
        let next = beside.keys().find(|path| wanted(path)).cloned();
        let Some((_, text)) = next.and_then(|path| beside.remove_entry(&path)) else { break };
        if let Some(playbook) = noetl_playbook::check(&text).playbook {
            calls.add(&playbook);
            playbooks.push(text);
        }
    }
    playbooks
}

impl CalledPlaybooks {
    fn add(&mut self, playbook: &Playbook) {
        for step in &playbook.steps {
            let called: Vec<&ValueTemplate> = match &step.work {
                StepWork::Own(own) if own.kind == ControlToolKind::Playbook => {
                    vec![&own.tool.config]
                }
                StepWork::Split(split) => {
                    split.calls().map(|call| &call.task().tool.config).collect()
                }
                StepWork::Own(_) | StepWork::Route | StepWork::Tool(_) | StepWork::Pipeline(_) => {
                    Vec::new()
                }
            };
            for config in called {
                match path_of(config) {
                    Some(path) => {
                        self.paths.insert(path);
                    }
                    None => self.any = true,
                }
            }
        }
    }
}

/// Returns the path of a call, or `None` if it is a template.
fn path_of(config: &ValueTemplate) -> Option<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match config {
        ValueTemplate::Literal(config) => config.get("path").and_then(text),
        ValueTemplate::Map(entries) => {
            let (_, path) = entries.iter().find(|(name, _)| name == "path")?;
            match path {
                ValueTemplate::Literal(path) => text(path),
                _ => None,
            }
        }
        ValueTemplate::Template(_) | ValueTemplate::List(_) => None,
    }
}

/// Returns the playbooks in the directory of a file, by path.
///
/// Skips unreadable files. If the playbook calls one of them, the call fails because it is missing.
fn documents(file: &Path) -> BTreeMap<String, String> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let Ok(entries) = std::fs::read_dir(directory.unwrap_or(Path::new("."))) else {
        return BTreeMap::new();
    };
    let mut files: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    files.retain(|path| {
        let is_yaml = path.extension().is_some_and(|it| it == "yaml" || it == "yml");
        let is_small =
            std::fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() <= BYTES_MAX);
        is_yaml && is_small && path != file
    });
    files.sort();
    let texts = files.iter().take(FILES_MAX).filter_map(|path| std::fs::read_to_string(path).ok());
    let mut documents = BTreeMap::new();
    for text in texts {
        let Ok(description) = noetl_playbook::describe(&text) else { continue };
        if let Some(path) = description.path.or(description.name) {
            documents.entry(path).or_insert(text);
        }
    }
    documents
}
