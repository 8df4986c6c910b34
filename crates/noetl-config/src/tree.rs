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

/// Groups of settings that replace each other. A set in a higher layer replaces the other sets of
/// its group in files; the first key of a set decides whether it is given.
pub(crate) const ALTERNATIVES: &[&[&[&str]]] = &[
    &[
        &["database.url"],
        &["database.host", "database.port", "database.user", "database.password", "database.name"],
        &["database.shards", "database.cluster"],
    ],
    &[&["client.token"], &["worker.token_file"]],
    &[&["server.internal_api_token"], &["server.internal_api_token_file"]],
    &[&["steps.user"], &["steps.users"]],
];
