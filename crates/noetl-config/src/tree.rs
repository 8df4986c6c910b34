//! Every setting of the programs.

mod executions;
mod http;
mod steps;
mod storage;
mod worker;

pub use executions::{Bus, Executions, Retention, Traces};
pub use http::{Auth, Limits, Server};
pub use steps::{Egress, Steps};
pub use storage::{Database, Results, Secrets};
pub use worker::{Client, Worker};

use crate::kind::ParsedValue;
use crate::setting::{Section, Setting};

/// Declaration of a section.
#[derive(Debug, Clone, Copy)]
pub struct SectionInfo {
    pub name: &'static str,
    pub about: &'static str,
    pub settings: &'static [Setting],
}

/// Declares the tree from its sections.
macro_rules! options {
    ($($field:ident: $section:ty,)+) => {
        /// All settings. A process decodes only the sections that it uses, so a wrong variable of
        /// a worker doesn't stop a server.
        #[derive(Debug, Clone)]
        pub struct Options { $( pub $field: $section, )+ }

        const SECTIONS: &[SectionInfo] = &[$( SectionInfo {
            name: <$section>::NAME,
            about: <$section>::ABOUT,
            settings: <$section>::SETTINGS,
        }, )+];

        impl Options {
            /// Decodes every section of the tree from the values of [`Options::settings`].
            ///
            /// Returns `None` if a value doesn't fit its field.
            pub(crate) fn decode(
                values: &mut dyn Iterator<Item = Option<ParsedValue>>,
            ) -> Option<Self> {
                Some(Self { $( $field: <$section>::decode(values)?, )+ })
            }
        }
    };
}

options! {
    server: Server,
    auth: Auth,
    limits: Limits,
    database: Database,
    results: Results,
    secrets: Secrets,
    executions: Executions,
    retention: Retention,
    bus: Bus,
    egress: Egress,
    steps: Steps,
    worker: Worker,
    client: Client,
    traces: Traces,
}

impl Options {
    /// Returns the sections, in the order of the reference.
    pub fn sections() -> impl Iterator<Item = &'static SectionInfo> {
        SECTIONS.iter()
    }

    /// Returns every setting of the tree.
    pub fn settings() -> impl Iterator<Item = &'static Setting> {
        SECTIONS.iter().flat_map(|section| section.settings)
    }

    /// Returns the setting with this key.
    pub fn setting(key: &str) -> Option<&'static Setting> {
        Self::settings().find(|setting| setting.key == key)
    }
}

/// Setting that replaces others of lower files, because they describe another target.
#[derive(Debug)]
pub(crate) struct Replacement {
    pub by: &'static str,
    /// Whether the setting replaces others if a file sets it. Otherwise only a flag or a variable
    /// does.
    pub in_files: bool,
    pub keys: &'static [&'static str],
}

const fn replaces(by: &'static str, keys: &'static [&'static str]) -> Replacement {
    Replacement { by, in_files: true, keys }
}

/// Settings that describe a database.
const DATABASE: &[&str] = &[
    "database.url",
    "database.direct_url",
    "database.host",
    "database.port",
    "database.user",
    "database.password",
    "database.name",
    "database.shards",
    "database.cluster",
];

/// Settings that replace others of lower files. Flags and variables are never replaced, and no
/// setting replaces itself.
pub(crate) const REPLACEMENTS: &[Replacement] = &[
    // In a file, the directory may stand beside another database, whose key it contains.
    Replacement { by: "database.data", in_files: false, keys: DATABASE },
    // The direct URL of a lower file leads to another database.
    replaces("database.url", DATABASE),
    replaces("database.shards", DATABASE),
    replaces(
        "database.host",
        &["database.url", "database.direct_url", "database.shards", "database.cluster"],
    ),
    // Only workers use the file, and prefer it, so it doesn't replace the token of other verbs.
    replaces("client.token", &["worker.token_file"]),
    replaces("server.internal_api_token", &["server.internal_api_token_file"]),
    replaces("server.internal_api_token_file", &["server.internal_api_token"]),
    replaces("steps.user", &["steps.users"]),
    replaces("steps.users", &["steps.user"]),
    replaces("traces.endpoint", &["traces.traces_endpoint"]),
    replaces("traces.traces_endpoint", &["traces.endpoint"]),
];
