//! Resolves the value of each setting from the layers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use crate::file::{FileLayer, origin};
use crate::kind::{Kind, ParsedValue, RawValue};
use crate::mask;
use crate::problem::{Origin, Problem};
use crate::setting::{Feature, Section, Setting};
use crate::tree::{Options, REPLACEMENTS};

/// Layers of a process: files, environment, and flags. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Files, lowest precedence first.
    files: Arc<[FileLayer]>,
    /// Variables that belong to settings and are not empty.
    variables: Arc<BTreeMap<&'static str, OsString>>,
    /// Flags by the key of their setting, with the long name.
    flags: BTreeMap<&'static str, (RawValue, &'static str)>,
}

/// Value of a setting and the layer that gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedValue {
    pub value: ParsedValue,
    pub origin: Origin,
}

/// Effective value of a setting, for display.
#[derive(Debug, Clone)]
pub struct Effective {
    pub setting: &'static Setting,
    /// Value without secrets, or `None` if the setting has neither a value nor a default.
    pub shown: Option<String>,
    pub origin: Origin,
}

impl Settings {
    /// Creates the layers from files, lowest precedence first, and an environment.
    pub fn new(
        files: Vec<FileLayer>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        let mut variables = BTreeMap::new();
        for (name, value) in environment {
            let known = name.to_str().and_then(variable);
            // An empty variable counts as unset, as in `NOETL_NATS_URL= noetl dev`.
            if let Some(known) = known.filter(|_| !value.is_empty()) {
                variables.insert(known, value);
            }
        }
        Self { files: files.into(), variables: Arc::new(variables), flags: BTreeMap::new() }
    }

    /// Returns these layers with flags on top: key of the setting, long name, and value.
    #[must_use]
    pub fn with_flags(
        &self,
        flags: impl IntoIterator<Item = (&'static str, &'static str, RawValue)>,
    ) -> Self {
        let mut settings = self.clone();
        for (key, long, given) in flags {
            settings.flags.insert(key, (given, long));
        }
        settings
    }

    /// Decodes a section from these layers.
    ///
    /// # Errors
    ///
    /// Returns every problem of the section.
    pub fn section<S: Section>(&self) -> Result<S, Vec<Problem>> {
        let values = self.values(S::SETTINGS.iter())?;
        S::decode(&mut values.into_iter()).ok_or_else(Vec::new)
    }

    /// Decodes every section of the tree from these layers.
    ///
    /// # Errors
    ///
    /// Returns the problems of all sections.
    pub fn options(&self) -> Result<Options, Vec<Problem>> {
        let values = self.values(Options::settings())?;
        Options::decode(&mut values.into_iter()).ok_or_else(Vec::new)
    }

    /// Returns the value of a setting with its origin, or `None` if it has neither a value nor a
    /// default.
    ///
    /// # Errors
    ///
    /// Returns a problem if the value is not of the setting's type.
    pub fn find(&self, setting: &'static Setting) -> Result<Option<ResolvedValue>, Problem> {
        let layers = self.given(setting);
        if setting.is_joined {
            return self.joined(&layers);
        }
        for (given, origin) in layers {
            match setting.kind.parse(&given) {
                Ok(Some(value)) => return Ok(Some(ResolvedValue { value, origin })),
                Err(()) if self.has_effect(setting) => {
                    return Err(mismatch(setting, &given, &origin));
                }
                Ok(None) | Err(()) => {}
            }
        }
        Ok(None)
    }

    /// Returns the name under which the setting of this variable was set, for messages: the
    /// variable, a flag, or a position in a file with a key.
    pub fn name_of(&self, variable: &str) -> String {
        let owner = Options::settings().find(|setting| setting.variables.contains(&variable));
        let origin =
            owner.and_then(|setting| Some((setting, self.given(setting).into_iter().next()?)));
        match origin {
            Some((_, (_, Origin::Default))) | None => variable.to_owned(),
            Some((setting, (_, origin))) => origin.name(setting.key),
        }
    }

    /// Returns the origin of the value of the setting with this key.
    pub fn origin_of(&self, key: &str) -> Origin {
        let first =
            Options::setting(key).and_then(|setting| self.given(setting).into_iter().next());
        first.map_or(Origin::Default, |(_, origin)| origin)
    }

    /// Returns the elements of a joined list with their origins, lowest precedence first.
    pub fn items_of(&self, key: &str) -> Vec<(String, Origin)> {
        let layers = Options::setting(key).map(|setting| self.given(setting)).unwrap_or_default();
        let items = layers.into_iter().rev().flat_map(|(given, origin)| {
            given.items().into_iter().map(move |item| (item, origin.clone()))
        });
        items.collect()
    }

    /// Returns every setting with its effective value, or all problems.
    ///
    /// # Errors
    ///
    /// Returns the problems of all settings.
    pub fn effective(&self) -> Result<Vec<Effective>, Vec<Problem>> {
        let (mut effective, mut problems) = (Vec::new(), Vec::new());
        for setting in Options::settings() {
            match self.find(setting) {
                Err(problem) => problems.push(problem),
                Ok(found) => effective.push(Effective {
                    setting,
                    shown: found.as_ref().map(|found| mask::shown(setting, &found.value)),
                    origin: found.map_or(Origin::Default, |found| found.origin),
                }),
            }
        }
        if problems.is_empty() { Ok(effective) } else { Err(problems) }
    }

    /// Returns the configuration files, lowest precedence first.
    pub fn files(&self) -> impl Iterator<Item = &std::path::Path> {
        self.files.iter().map(|file| file.path.as_path())
    }

    /// Returns the files with secrets that settings of any layer name, also those that have no
    /// effect: they are secrets of other processes.
    pub fn secret_files(&self) -> Vec<std::path::PathBuf> {
        let named = Options::settings().filter(|setting| setting.is_secret_file);
        let paths = named.flat_map(|setting| {
            let flag = self.flags.get(setting.key).map(|(value, _)| value);
            let files = self.files.iter().filter_map(|file| file.values.get(setting.key));
            let values = flag.into_iter().chain(files.map(|(value, _)| value));
            let paths = values.filter_map(|value| match value {
                RawValue::Text(path) => Some(path),
                RawValue::List(_) => None,
            });
            paths.chain(setting.variables.iter().filter_map(|name| self.variables.get(name)))
        });
        paths.filter(|path| !path.is_empty()).map(Into::into).collect()
    }

    /// Returns the values of these settings in their order, or all problems with them.
    fn values(
        &self,
        settings: impl Iterator<Item = &'static Setting>,
    ) -> Result<Vec<Option<ParsedValue>>, Vec<Problem>> {
        let (mut values, mut problems) = (Vec::new(), Vec::new());
        for setting in settings {
            match self.find(setting) {
                Ok(found) => values.push(found.map(|found| found.value)),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(values) } else { Err(problems) }
    }

    /// Returns what the layers give for a setting, highest precedence first, with the default last.
    fn given(&self, setting: &'static Setting) -> Vec<(RawValue, Origin)> {
        let mut given = Vec::new();
        if let Some((flag, long)) = self.flags.get(setting.key) {
            given.push((flag.clone(), Origin::Flag(long)));
        }
        for name in setting.variables {
            if let Some(value) = self.variables.get(name) {
                given.push((RawValue::Text(value.clone()), Origin::Variable(name)));
            }
        }
        for (index, file) in self.files.iter().enumerate().rev() {
            if let Some((value, position)) = file.values.get(setting.key)
                && !value.is_empty()
                && !self.is_replaced(setting.key, index)
            {
                given.push((value.clone(), origin(position)));
            }
        }
        given.extend(setting.default.map(|text| (text.into(), Origin::Default)));
        given
    }

    /// Returns `true` if this process uses the feature of the setting.
    fn has_effect(&self, setting: &Setting) -> bool {
        let is_sqlite = |url: &str| url.starts_with("sqlite:");
        let (shards, url) = (self.text("database.shards"), self.text("database.url"));
        let is_postgres_host =
            || shards.is_none() && url.is_none() && self.text("database.host").is_some();
        match setting.only_with {
            None => true,
            Some(Feature::PostgresHost) => is_postgres_host(),
            Some(Feature::Postgres) => match (&shards, &url) {
                (Some(shards), _) => {
                    let cluster = self.text("database.cluster");
                    let mut entries = shards.split(',').chain(cluster.as_deref());
                    !entries.all(|entry| is_sqlite(entry.trim()))
                }
                (None, Some(url)) => !is_sqlite(url),
                (None, None) => is_postgres_host(),
            },
            Some(Feature::TraceExport) => {
                let exporter = self.text("traces.exporter");
                let is_disabled = self.text("traces.disabled").is_some_and(|text| {
                    Kind::OtelSwitch.parse(&text.as_str().into())
                        == Ok(Some(ParsedValue::Switch(true)))
                });
                let endpoints = ["traces.endpoint", "traces.traces_endpoint"];
                let is_asked =
                    exporter.is_some() || endpoints.iter().any(|key| self.text(key).is_some());
                is_asked && !is_disabled && exporter.as_deref() != Some("none")
            }
        }
    }

    /// Returns the text of a setting without surrounding blanks, or `None` if it is unset or blank.
    fn text(&self, key: &str) -> Option<String> {
        let (given, _) = self.given(Options::setting(key)?).into_iter().next()?;
        let RawValue::Text(text) = given else { return None };
        let text = text.to_string_lossy().trim().to_owned();
        Some(text).filter(|text| !text.is_empty())
    }

    /// Returns `true` if a layer above the file sets a setting that replaces this key: a database in
    /// the environment replaces another kind of database in a file.
    fn is_replaced(&self, key: &str, file: usize) -> bool {
        let mut replacements =
            REPLACEMENTS.iter().filter(|it| it.by != key && it.keys.contains(&key));
        replacements
            .any(|it| self.is_given(it.by) || it.in_files && self.is_in_file(it.by, file + 1))
    }

    /// Returns `true` if a flag or a variable sets this key.
    fn is_given(&self, key: &str) -> bool {
        let names = Options::setting(key).map_or(&[][..], |setting| setting.variables);
        self.flags.contains_key(key) || names.iter().any(|name| self.variables.contains_key(name))
    }

    /// Returns `true` if this file or a later one sets this key.
    fn is_in_file(&self, key: &str, first: usize) -> bool {
        let values = self.files[first..].iter().filter_map(|file| file.values.get(key));
        values.into_iter().any(|(value, _)| !value.is_empty())
    }

    /// Joins the lists of all layers, lowest precedence first.
    fn joined(&self, layers: &[(RawValue, Origin)]) -> Result<Option<ResolvedValue>, Problem> {
        let Some((_, origin)) = layers.first() else { return Ok(None) };
        let items = layers.iter().rev().flat_map(|(given, _)| given.items()).collect();
        Ok(Some(ResolvedValue { value: ParsedValue::List(items), origin: origin.clone() }))
    }
}

/// Describes a value of the wrong type.
fn mismatch(setting: &Setting, given: &RawValue, origin: &Origin) -> Problem {
    let expected = setting.kind.expected();
    let text = match given {
        RawValue::Text(text) => text.to_str(),
        RawValue::List(_) => Some("a list"),
    };
    let rest = match text {
        None => "is not valid UTF-8".to_owned(),
        Some(_) if setting.is_secret() => format!("is {expected}"),
        Some(text) => format!("is {expected}, not '{text}'"),
    };
    Problem::with_value(origin, setting.key, &rest)
}

/// Returns the name of a variable of the tree.
fn variable(name: &str) -> Option<&'static str> {
    Options::settings().flat_map(|setting| setting.variables).copied().find(|known| *known == name)
}
