//! Finds names that templates use and nothing defines.
//!
//! The definitions are complete only after the whole document has been decoded. The decoder
//! therefore records the first position of each used name, and checks the names at the end.

use std::collections::{HashMap, HashSet};

use noetl_template::{MentionSuffix, Template};

use super::context::Context;
use super::cursor::Cursor;
use super::suggest;
use crate::diagnostic::SourcePos;
use crate::document::KeychainEntry;

/// Maximum number of distinct names recorded. A document that uses more is generated, and warnings
/// about each name would not be read.
const NOTED_MAX: usize = 1000;

/// Maximum number of comparisons of unknown names with known ones. Beyond it, no name is suggested.
const COMPARISONS_MAX: usize = 1_000_000;

/// Names that every template can use. A step or item of the same name hides the built-in one, or is
/// hidden by it.
const ALWAYS_SEEN: &[&str] = &[
    "args",
    "catalog_id",
    "ctx",
    "env",
    "event",
    "execution_id",
    "input",
    "iter",
    "job",
    "keychain",
    "now",
    "outcome",
    "output",
    "parent_execution_id",
    "path",
    "payload",
    "range",
    "result",
    "results",
    "spec",
    "step",
    "steps",
    "version",
    "workload",
];

/// Further built-in names, independent of the document.
const KNOWN: &[&str] = &[
    "_attempt",
    "_index",
    "_prev",
    "_task",
    "_total",
    "bool",
    "context",
    "dict",
    "float",
    "input_data",
    "int",
    "json",
    "len",
    "loop",
    "loop_index",
    "max",
    "min",
    "namespace",
    "str",
    "uuid",
    "uuid4",
    "vars",
    "zip",
    "__frame_max_rows",
];

/// Returns `true` if every template can use this name.
pub(super) fn is_always_seen(name: &str) -> bool {
    ALWAYS_SEEN.contains(&name)
}

/// Returns `true` if templates can refer to a name. A name with the form of an identifier that is a
/// keyword of the template language, such as `none` or `not`, cannot be referred to. Names that are
/// not identifiers need brackets and pass.
pub(super) fn is_sayable(name: &str) -> bool {
    let mut letters = name.chars();
    let is_name = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    let says = |template: Template| template.names().contains(name);
    !is_name || Template::parse(&format!("{{{{ {name} }}}}")).is_ok_and(says)
}

fn built_in<'a>() -> impl Iterator<Item = &'a str> {
    let known: [&'a [&'a str]; 2] = [ALWAYS_SEEN, KNOWN];
    known.into_iter().flatten().copied()
}

/// Names that templates use and that the document defines.
#[derive(Debug, Default)]
pub(super) struct Names {
    defined: HashSet<String>,
    used: HashMap<String, (SourcePos, String)>,
    secrets: HashMap<String, (SourcePos, String)>,
}

impl Names {
    /// Records that the document gives this name a value: as a variable, a label, an item, or an
    /// argument.
    pub(super) fn define(&mut self, name: &str) {
        if !self.defined.contains(name) {
            self.defined.insert(name.to_owned());
        }
    }

    /// Records the keychain entries that a template names.
    fn note_secrets(&mut self, at: &Cursor<'_>, template: &Template) {
        for mention in template.mentions() {
            if let ("keychain", MentionSuffix::Key(name)) = (&*mention.name, &mention.next)
                && self.secrets.len() < NOTED_MAX
                && !self.secrets.contains_key(&**name)
            {
                self.secrets.insert(name.to_string(), (at.node.at, at.path.to_string()));
            }
        }
    }

    /// Records the names that a template uses. Skips templates that handle missing values
    /// explicitly.
    pub(super) fn note(&mut self, at: &Cursor<'_>, template: &Template) {
        self.note_secrets(at, template);
        let allows = |word: &&str| template.source().contains(*word);
        if self.used.len() >= NOTED_MAX || ["default", "defined", "d("].iter().any(allows) {
            return;
        }
        for name in template.names() {
            let known = self.used.contains_key(&name) || self.defined.contains(&name);
            if !known && !built_in().any(|known| known == name) {
                self.used.insert(name, (at.node.at, at.path.to_string()));
            }
        }
    }
}

/// Warns about every name that only the payload of a request could give a value.
pub(super) fn warn_undefined(cx: &mut Context<'_>, root: &Cursor<'_>, keychain: &[KeychainEntry]) {
    let mut names = std::mem::take(&mut cx.names);
    warn_secrets(cx, std::mem::take(&mut names.secrets), keychain);
    let workload = root.node.get("workload").and_then(|node| node.entries()).unwrap_or_default();
    let inputs: HashSet<&str> = workload.iter().map(|(key, _)| &*key.name).collect();
    let mut missing: Vec<_> = names.used.into_iter().collect();
    missing.retain(|(name, _)| {
        !names.defined.contains(name)
            && !inputs.contains(&**name)
            && !cx.steps.contains_key(&**name)
    });
    missing.sort_by(|a, b| a.1.cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
    let known = names.defined.len() + inputs.len() + built_in().count();
    let searches = known.saturating_mul(missing.len()) <= COMPARISONS_MAX;
    for (name, (place, path)) in missing {
        let defined = names.defined.iter().map(String::as_str);
        let candidates = defined.chain(inputs.iter().copied()).chain(built_in());
        // Any two names of two letters are close to each other.
        let searches = searches && name.chars().count() > 2;
        let close = searches.then(|| suggest::closest(&name, candidates)).flatten();
        let close = close.map(str::to_owned);
        let close = close.or_else(|| searches.then(|| cx.similar_step(&name)).flatten());
        let meant = close.map(|close| format!("did you mean '{close}'? ")).unwrap_or_default();
        let message = format!("nothing in this playbook gives '{name}' a value");
        let help = format!("{meant}declare it under 'workload', or assign it with 'set'");
        cx.findings.warning("W108", place, path, message, help);
    }
}

fn warn_secrets(
    cx: &mut Context<'_>,
    used: HashMap<String, (SourcePos, String)>,
    keychain: &[KeychainEntry],
) {
    let declared: HashSet<&str> = keychain.iter().map(|entry| &*entry.name).collect();
    let mut used: Vec<_> = used.into_iter().collect();
    used.sort_by(|a, b| (&a.1, &a.0).cmp(&(&b.1, &b.0)));
    for (name, (place, path)) in used {
        if !declared.contains(&*name) {
            let message = format!("the keychain declares no credential '{name}'");
            let help = format!("add 'keychain: [{{name: {name}, kind: credential, …}}]'");
            cx.findings.warning("W108", place, path, message, help);
        }
    }
}
