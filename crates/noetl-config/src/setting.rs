//! Declaration of a setting.

use crate::kind::{Kind, ParsedValue};

/// Command-line flag of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flag {
    /// Long name, such as `port`, without dashes.
    pub long: &'static str,
    /// Name of the value in the help; empty for a flag without a value.
    pub value_name: &'static str,
}

/// Whether a value may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrecy {
    Open,
    /// URL, or several separated by commas, that may contain user and password.
    Url,
    Secret,
}

/// Feature that a process may not use, although other programs set its variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feature {
    /// Postgres database that is given by its host.
    PostgresHost,
    /// Postgres database that is given by a URL, by its host, or as a shard.
    Postgres,
    /// Export of traces to a collector, neither turned off nor without an endpoint.
    TraceExport,
}

/// Declaration of a setting: key, type, variables, flag, and default.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Key in the file: section and name, separated by a period.
    pub key: &'static str,
    /// Description, as sentences for the help and the reference.
    pub about: &'static str,
    pub kind: Kind,
    /// Environment variables, highest precedence first.
    pub variables: &'static [&'static str],
    pub flag: Option<Flag>,
    /// Default, in the form of a variable.
    pub default: Option<&'static str>,
    /// Description of a default that isn't a constant.
    pub default_note: Option<&'static str>,
    /// Whether a file in the working directory must not set it, because the value decides who may
    /// do what, what is reached, or what is executed.
    pub is_guarded: bool,
    /// Whether the path names a file with a secret.
    pub is_secret_file: bool,
    /// Whether values of all layers are joined, later ones last.
    pub is_joined: bool,
    /// Feature without which this setting has no effect. Then a value of the wrong type counts as
    /// unset: another program's `POSTGRES_PORT` may have another form.
    pub(crate) only_with: Option<Feature>,
    pub(crate) secrecy: Secrecy,
}

impl Setting {
    /// Declares a setting of this type with these environment variables.
    pub(crate) const fn new(kind: Kind, variables: &'static [&'static str]) -> Self {
        Self {
            key: "",
            about: "",
            kind,
            variables,
            flag: None,
            default: None,
            default_note: None,
            is_guarded: false,
            is_secret_file: false,
            is_joined: false,
            only_with: None,
            secrecy: Secrecy::Open,
        }
    }

    pub(crate) const fn flag(mut self, long: &'static str, value_name: &'static str) -> Self {
        self.flag = Some(Flag { long, value_name });
        self
    }

    pub(crate) const fn default(mut self, text: &'static str) -> Self {
        self.default = Some(text);
        self
    }

    pub(crate) const fn note(mut self, text: &'static str) -> Self {
        self.default_note = Some(text);
        self
    }

    pub(crate) const fn guarded(mut self) -> Self {
        self.is_guarded = true;
        self
    }

    pub(crate) const fn secret(mut self) -> Self {
        self.secrecy = Secrecy::Secret;
        self.guarded()
    }

    pub(crate) const fn url(mut self) -> Self {
        self.secrecy = Secrecy::Url;
        self.guarded()
    }

    pub(crate) const fn secret_file(mut self) -> Self {
        self.is_secret_file = true;
        self.guarded()
    }

    pub(crate) const fn only_with(mut self, feature: Feature) -> Self {
        self.only_with = Some(feature);
        self
    }

    pub(crate) const fn joined(mut self) -> Self {
        self.is_joined = true;
        self
    }

    pub(crate) const fn named(mut self, key: &'static str, about: &'static str) -> Self {
        self.key = key;
        self.about = about;
        self
    }

    /// Returns the name within the section.
    pub fn name(&self) -> &'static str {
        self.key.split_once('.').map_or(self.key, |(_, name)| name)
    }

    /// Returns `true` if the value, or a part of it, is never shown.
    pub fn is_secret(&self) -> bool {
        self.secrecy != Secrecy::Open
    }

    /// Returns the description on one line, without the final period.
    pub fn about_line(&self) -> String {
        let words: Vec<&str> = self.about.split_whitespace().collect();
        words.join(" ").trim_end_matches('.').to_owned()
    }

    /// Returns the default for people, or `None` if the setting has none.
    pub fn default_text(&self) -> Option<&'static str> {
        self.default_note.or(self.default)
    }
}

/// Group of settings: a table of the file, and a struct.
pub trait Section: Sized {
    const NAME: &'static str;
    const ABOUT: &'static str;
    const SETTINGS: &'static [Setting];

    /// Decodes the section from the values of its settings, in the order of
    /// [`SETTINGS`](Self::SETTINGS). Takes one item per setting.
    ///
    /// Returns `None` if a value doesn't fit its field.
    fn decode(values: &mut dyn Iterator<Item = Option<ParsedValue>>) -> Option<Self>;
}

/// Declares a section: its struct, and each setting with key, type, and description.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $name:ident = $key:literal {
            $( $(#[doc = $doc:literal])+ $field:ident: $type:ty = $setting:expr; )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone)]
        pub struct $name { $( $(#[doc = $doc])+ pub $field: $type, )+ }

        impl $crate::Section for $name {
            const NAME: &'static str = $key;
            const ABOUT: &'static str = concat!($($about, "\n"),+);
            const SETTINGS: &'static [$crate::Setting] = &[$(
                $setting.named(concat!($key, ".", stringify!($field)), concat!($($doc, "\n"),+)),
            )+];

            fn decode(
                values: &mut dyn Iterator<Item = Option<$crate::ParsedValue>>,
            ) -> Option<Self> {
                Some(Self { $( $field: $crate::kind::FromValue::from_value(values.next()?)?, )+ })
            }
        }
    };
}
pub(crate) use section;
