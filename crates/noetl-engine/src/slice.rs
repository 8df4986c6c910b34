//! Extracts the part of an execution's state that a command's templates name.

use std::collections::BTreeSet;
use std::sync::Arc;

use noetl_model::scope::{CommandScope, IterationScope, ScopeBlob, ScopePart};
use noetl_model::{Map, Value};
use noetl_playbook::document::KeychainEntry;
use noetl_playbook::python_names::NamedKeys;
use noetl_template::{
    Mention, MentionSuffix, Names, Scope, ValuePatch, ValueSlot, ValueSource, ValueTemplate,
    exact_json,
};

/// Returns the values of a scope that templates with these mentions may read. Values that are not
/// in memory are added to the scope's missing values, except blobs, which the worker that renders
/// the templates loads itself.
///
/// Includes only the keychain entries that the templates name, and the values that the settings of
/// those entries name.
pub(crate) fn slice_scope(
    mentions: &BTreeSet<Mention>,
    scope: &Scope,
    keychain: &[KeychainEntry],
) -> CommandScope {
    let mut slice = Slice { scope, keychain, made: empty(scope) };
    let item = scope.iteration.as_ref().map(|iteration| &iteration.name);
    for mention in mentions.iter().filter(|mention| Some(&mention.name) != item) {
        slice.add(mention);
    }
    slice.made
}

/// Maximum size, in bytes, of the results and variables passed to code that may read any of them.
/// Larger values are omitted, the largest first.
const CODE_BYTES_MAX: usize = 256 * 1024;

/// Returns the values of a scope that Python code may read: results of steps, `ctx`, and
/// `workload`. Never includes the environment or the keychain, which only templates may name.
pub(crate) fn of_code(named: &NamedKeys, scope: &Scope) -> Option<CommandScope> {
    let made = CommandScope { iteration: None, ..empty(scope) };
    let mut slice = Slice { scope, keychain: &[], made };
    match named {
        NamedKeys::Keys(keys) => {
            for key in keys {
                match &**key {
                    "workload" => slice.all(ScopePart::Workload),
                    "ctx" => slice.all(ScopePart::Ctx),
                    key => {
                        let parts = [ScopePart::Ctx, ScopePart::Steps, ScopePart::Workload];
                        parts.into_iter().for_each(|part| slice.named(part, key));
                    }
                }
            }
        }
        NamedKeys::All => {
            let parts = [ScopePart::Ctx, ScopePart::Steps, ScopePart::Workload];
            parts.into_iter().for_each(|part| slice.all(part));
            slice.made.blobs.clear();
            bound(&mut slice.made);
        }
    }
    let made = slice.made;
    let is_empty = made.workload.is_empty()
        && made.ctx.is_empty()
        && made.steps.is_empty()
        && made.blobs.is_empty();
    (!is_empty).then_some(made)
}

/// Removes the largest values until the rest fits in [`CODE_BYTES_MAX`].
fn bound(made: &mut CommandScope) {
    let mut sizes: Vec<(usize, ScopePart, String)> = Vec::new();
    let parts = [
        (ScopePart::Steps, &made.steps),
        (ScopePart::Ctx, &made.ctx),
        (ScopePart::Workload, &made.workload),
    ];
    for (part, values) in parts {
        let size = |value: &Value| value.to_string().len();
        sizes.extend(values.iter().map(|(name, value)| (size(value), part, name.clone())));
    }
    let mut total: usize = sizes.iter().map(|(size, _, _)| size).sum();
    sizes.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.2.cmp(&other.2)));
    for (size, part, name) in sizes {
        if total <= CODE_BYTES_MAX {
            return;
        }
        total -= size;
        match part {
            ScopePart::Ctx => made.ctx.remove(&name),
            ScopePart::Workload => made.workload.remove(&name),
            ScopePart::Steps | ScopePart::Previous | ScopePart::Earlier => made.steps.remove(&name),
        };
    }
}

/// Returns the scope of a command that has no template left to render.
pub(crate) fn bare(scope: &Scope) -> CommandScope {
    empty(&Scope { iteration: None, ..scope.clone() })
}

fn empty(scope: &Scope) -> CommandScope {
    let identity = &scope.identity;
    let iteration = scope.iteration.as_ref().map(|iteration| IterationScope {
        name: iteration.name.clone(),
        item: exact_json(&scope.reach.data(&iteration.item)),
        index: iteration.index,
        total: iteration.total,
    });
    CommandScope {
        workload: Map::new(),
        ctx: Map::new(),
        steps: Map::new(),
        tasks: std::collections::BTreeMap::new(),
        step: Map::new(),
        previous: None,
        iteration,
        spec: None,
        env: std::collections::BTreeMap::new(),
        keychain: Map::new(),
        blobs: Vec::new(),
        earlier: Map::new(),
        split: None,
        catalog: identity.catalog,
        path: identity.path.clone(),
        version: identity.version,
        parent: identity.parent,
    }
}

struct Slice<'a> {
    scope: &'a Scope,
    keychain: &'a [KeychainEntry],
    made: CommandScope,
}

impl Slice<'_> {
    fn add(&mut self, mention: &Mention) {
        let scope = self.scope;
        match (&*mention.name, &mention.next) {
            ("workload", MentionSuffix::Key(key)) => self.named(ScopePart::Workload, key),
            ("workload", _) => self.all(ScopePart::Workload),
            ("ctx", MentionSuffix::Key(key)) => {
                self.named(ScopePart::Ctx, key);
                self.named(ScopePart::Workload, key);
            }
            ("ctx", _) => {
                self.all(ScopePart::Ctx);
                if mention.next == MentionSuffix::Computed {
                    self.all(ScopePart::Workload);
                }
            }
            ("steps", MentionSuffix::Key(step)) => self.named(ScopePart::Steps, step),
            ("steps", _) => self.all(ScopePart::Steps),
            ("step", MentionSuffix::Key(key)) => self.local(key),
            ("step", _) => {
                let names: Vec<Arc<str>> = scope.step.keys().cloned().collect();
                names.iter().for_each(|name| self.local(name));
            }
            ("env", MentionSuffix::Key(key)) => {
                if let Some(value) = scope.env.get(&**key) {
                    self.made.env.insert(key.to_string(), value.clone());
                }
            }
            ("env", _) => self.made.env = (*scope.env).clone(),
            ("keychain", MentionSuffix::Key(name)) => self.entry(name),
            // The name is known only when the template is rendered.
            ("keychain", MentionSuffix::Computed) => {
                for entry in self.keychain {
                    self.entry(&entry.name);
                }
            }
            ("spec", _) => self.made.spec = scope.spec.as_ref().map(exact_json),
            (name, _) => {
                self.named(ScopePart::Ctx, name);
                self.named(ScopePart::Steps, name);
                self.named(ScopePart::Workload, name);
                if name == "result" {
                    self.previous();
                }
            }
        }
    }

    /// Adds a keychain entry as written in the playbook, and the values that its settings name. The
    /// worker that runs the command resolves its secrets.
    fn entry(&mut self, name: &str) {
        let Some(entry) = self.keychain.iter().find(|entry| *entry.name == *name) else { return };
        if self.made.keychain.contains_key(name) {
            return;
        }
        let mut settings = entry.settings.clone();
        settings.insert("kind".to_owned(), (*entry.kind).into());
        let settings = Value::Object(settings);
        self.made.keychain.insert(name.to_owned(), settings.clone());
        // A template that does not compile is reported when the entry is resolved.
        let Ok(compiled) = ValueTemplate::compile(settings) else { return };
        for template in compiled.templates() {
            for mention in template.mentions() {
                self.add(mention);
            }
        }
    }

    fn names(&self, part: ScopePart) -> &Arc<Names> {
        match part {
            ScopePart::Workload => &self.scope.workload,
            ScopePart::Ctx => &self.scope.ctx,
            ScopePart::Steps | ScopePart::Previous | ScopePart::Earlier => &self.scope.results,
        }
    }

    fn all(&mut self, part: ScopePart) {
        let names: Vec<Arc<str>> = self.names(part).keys().cloned().collect();
        for name in names {
            self.named(part, &name);
        }
    }

    fn named(&mut self, part: ScopePart, name: &str) {
        let Some(slot) = self.names(part).get(name).cloned() else { return };
        if let (ScopePart::Steps, Some((step, label))) =
            (part, self.scope.tasks.get_key_value(name))
        {
            self.made.tasks.insert(step.clone(), label.clone());
        }
        let into = match part {
            ScopePart::Workload => &self.made.workload,
            ScopePart::Ctx => &self.made.ctx,
            ScopePart::Steps | ScopePart::Previous | ScopePart::Earlier => &self.made.steps,
        };
        let is_blob = self.made.blobs.iter().any(|blob| blob.among == part && &*blob.name == name);
        if into.contains_key(name) || is_blob {
            return;
        }
        let Some(value) = self.value(part, name, &slot) else { return };
        let into = match part {
            ScopePart::Workload => &mut self.made.workload,
            ScopePart::Ctx => &mut self.made.ctx,
            ScopePart::Steps | ScopePart::Previous | ScopePart::Earlier => &mut self.made.steps,
        };
        into.insert(name.to_owned(), value);
    }

    /// Adds a variable that the step run set for itself. Such a variable is never in a blob.
    fn local(&mut self, name: &str) {
        if let Some(slot) = self.scope.step.get(name) {
            let value = exact_json(&self.scope.reach.data(slot));
            self.made.step.insert(name.to_owned(), value);
        }
    }

    fn previous(&mut self) {
        let Some(slot) = self.scope.previous.clone() else { return };
        if self.made.previous.is_none() {
            self.made.previous = self.value(ScopePart::Previous, "", &slot);
        }
    }

    /// Returns the value of a slot. If the value is in a blob, adds the blob's reference and
    /// returns `None`.
    fn value(&mut self, among: ScopePart, name: &str, slot: &ValueSlot) -> Option<Value> {
        if let ValueSlot::Away(away) = slot
            && let [ValuePatch { source: ValueSource::Blob { reference, fields }, .. }] =
                away.parts.as_slice()
        {
            self.made.blobs.push(ScopeBlob {
                among,
                name: Arc::from(name),
                reference: reference.clone(),
                fields: exact_json(fields),
            });
            return None;
        }
        Some(exact_json(&self.scope.reach.data(slot)))
    }
}
