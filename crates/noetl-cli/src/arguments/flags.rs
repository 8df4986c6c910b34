//! Flags that are generated from the declarations of settings.

use std::ffi::OsString;
use std::fmt;
use std::marker::PhantomData;

use clap::builder::PossibleValuesParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches, ValueHint};
use noetl_config::{Kind, Options, RawValue, Setting, Settings};

use crate::settings;

/// Flags of a verb that belong to settings.
pub(crate) trait FlagGroup {
    /// Keys of the settings, in the order of the help.
    const KEYS: &'static [&'static str];

    /// Returns the long name of a flag, if the verb gives it another one.
    fn long(_key: &str) -> Option<&'static str> {
        None
    }

    /// Changes what is particular to this verb, such as conflicts.
    fn adapt(_key: &str, arg: Arg) -> Arg {
        arg
    }
}

/// Values of the flags of a group. They are the highest layer of the settings.
pub(crate) struct Flags<G> {
    values: Vec<(&'static str, &'static str, RawValue)>,
    group: PhantomData<G>,
}

impl<G> Flags<G> {
    /// Creates flags with these values, by key; `None` is a flag that was not given.
    pub(crate) fn with_values<'a>(
        values: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
    ) -> Self {
        let values = values.into_iter().filter_map(|(key, value)| {
            let setting = Options::setting(key)?;
            Some((setting.key, setting.flag?.long, RawValue::from(value?)))
        });
        Self { values: values.collect(), group: PhantomData }
    }

    /// Returns the settings of this process with these flags on top.
    pub(crate) fn settings(&self) -> Settings {
        self.over(settings::current())
    }

    /// Returns settings with these flags on top.
    pub(crate) fn over(&self, settings: &Settings) -> Settings {
        settings.with_flags(self.values.iter().cloned())
    }

    /// Returns `true` if the flag of this key was given.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.values.iter().any(|(flag_key, _, _)| *flag_key == key)
    }
}

impl<G> Clone for Flags<G> {
    fn clone(&self) -> Self {
        Self { values: self.values.clone(), group: PhantomData }
    }
}

impl<G> Default for Flags<G> {
    fn default() -> Self {
        Self { values: Vec::new(), group: PhantomData }
    }
}

impl<G> fmt::Debug for Flags<G> {
    /// Shows the keys only, because values may be secrets.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.values.iter().map(|(key, _, _)| key)).finish()
    }
}

impl<G: FlagGroup> clap::Args for Flags<G> {
    fn augment_args(command: Command) -> Command {
        let settings = G::KEYS.iter().filter_map(|key| Options::setting(key));
        command.args(settings.filter_map(|setting| {
            let arg = arg(setting, G::long(setting.key))?;
            Some(G::adapt(setting.key, arg))
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<G: FlagGroup> FromArgMatches for Flags<G> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in G::KEYS.iter().filter_map(|key| Options::setting(key)) {
            if let (Some(flag), Some(value)) = (setting.flag, flag_value(matches, setting)) {
                let long = G::long(setting.key).unwrap_or(flag.long);
                self.values.push((setting.key, long, value));
            }
        }
        Ok(())
    }
}

/// Returns the value of a flag, or `None` if it was not given.
fn flag_value(matches: &ArgMatches, setting: &Setting) -> Option<RawValue> {
    if matches.value_source(setting.key) != Some(ValueSource::CommandLine) {
        return None;
    }
    if is_switch(setting) {
        return Some(RawValue::from("true"));
    }
    let values: Vec<OsString> = matches.get_raw(setting.key)?.map(OsString::from).collect();
    match setting.is_joined {
        true => Some(RawValue::List(
            values.into_iter().map(|value| value.to_string_lossy().into_owned()).collect(),
        )),
        false => values.into_iter().next_back().map(RawValue::Text),
    }
}

/// Returns the argument of a setting, or `None` if it has no flag.
fn arg(setting: &'static Setting, long: Option<&'static str>) -> Option<Arg> {
    let flag = setting.flag?;
    let arg = Arg::new(setting.key).long(long.unwrap_or(flag.long)).help(help(setting));
    if is_switch(setting) {
        return Some(arg.action(ArgAction::SetTrue));
    }
    let action = if setting.is_joined { ArgAction::Append } else { ArgAction::Set };
    let arg = arg.value_name(flag.value_name).action(action);
    let kind = setting.kind;
    Some(match kind {
        Kind::Path => {
            arg.value_parser(clap::value_parser!(OsString)).value_hint(ValueHint::AnyPath)
        }
        Kind::Choice(words) => arg
            .value_parser(PossibleValuesParser::new(words))
            .ignore_case(true)
            .hide_possible_values(true),
        Kind::Text | Kind::List => arg.value_parser(clap::value_parser!(String)),
        _ => arg.value_parser(move |text: &str| match kind.parse(&RawValue::from(text)) {
            Ok(Some(_)) => Ok(text.to_owned()),
            Ok(None) | Err(()) => Err(format!("expected {}", kind.expected())),
        }),
    })
}

fn is_switch(setting: &Setting) -> bool {
    setting.flag.is_some_and(|flag| flag.value_name.is_empty())
}

/// Returns the help of a flag: description, variables, and default.
fn help(setting: &Setting) -> String {
    let form = match setting.kind {
        Kind::List => ", comma-separated",
        Kind::Switch => "=true",
        _ => "",
    };
    let variables = setting.variables.join(" or ");
    let mut help = format!("{} [env: {variables}{form}]", setting.about_line());
    if let Some(default) = setting.default_text().filter(|_| !is_switch(setting)) {
        help.push_str(&format!(" [default: {default}]"));
    }
    help
}
