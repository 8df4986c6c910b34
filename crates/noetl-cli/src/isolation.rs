//! Configures the isolation of steps from flags and the environment. The program doesn't start if
//! the machine doesn't support a requested level or limit.

use std::path::PathBuf;
use std::process::Command;

use noetl_tools::{EnvPolicy, Isolation, Level, Options, OwnFiles, User};

use crate::arguments::IsolationArguments;
use crate::contexts;
use crate::database::Database;
use crate::error::{CliError, ErrorKind};
use crate::settings::{number, setting, settings, switch};
use crate::stores::StoreLocation;

/// Path of the running executable. Stays valid if the file is replaced or removed.
const OWN_PROGRAM: &str = "/proc/self/exe";

const LEVEL: &str = "NOETL_STEP_ISOLATION";
const USERS: &str = "NOETL_STEP_USERS";
const PATHS: &str = "NOETL_STEP_PATHS";
const TOOLS: &str = "NOETL_STEP_TOOLS";
const SHARE: &str = "NOETL_STEP_SHARE_TENANTS";
const USER: &str = "NOETL_STEP_USER";
const NO_NETWORK: &str = "NOETL_STEP_NO_NETWORK";
const PRIVATE_TMP: &str = "NOETL_STEP_PRIVATE_TMP";
const MEMORY: &str = "NOETL_STEP_MEMORY_MB";
const CPU: &str = "NOETL_STEP_CPU_SECONDS";
const PROCESSES: &str = "NOETL_STEP_PROCESSES";
const CGROUP: &str = "NOETL_STEP_CGROUP";
const ENV: &str = "NOETL_STEP_ENV";

/// Applies the flags, or else the environment, to the options of the tools.
pub(crate) fn isolate(options: &mut Options, said: &IsolationArguments) -> Result<(), CliError> {
    let user = said.step_user.clone().or_else(|| setting(USER));
    let amount = |flag: Option<u32>, name: &str, least: i64| -> Result<Option<u64>, CliError> {
        match flag {
            Some(amount) => Ok(Some(amount.into())),
            None => Ok(number(name, least..=u32::MAX.into())?.and_then(|n| u64::try_from(n).ok())),
        }
    };
    let users = said.step_users.clone().or_else(|| setting(USERS));
    if user.is_some() && users.is_some() {
        let message = format!("{USER} and {USERS} are both given");
        return Err(CliError::new(ErrorKind::Config, message).hint("leave one of them out"));
    }
    options.isolation = Isolation {
        level: Level::None,
        users: users.map(|users| read(USERS, &users)).transpose()?,
        user: user.map(|user| self::user(user.trim())).transpose()?,
        no_network: said.step_no_network || switch(NO_NETWORK)?,
        private_tmp: said.step_private_tmp || switch(PRIVATE_TMP)?,
        memory_max: amount(said.step_memory, MEMORY, 16)?.map(|mib| mib << 20),
        cpu_seconds_max: amount(said.step_cpu_seconds, CPU, 1)?,
        processes_max: amount(said.step_processes, PROCESSES, 4)?,
        cgroup: said.step_cgroup.clone().or_else(|| setting(CGROUP).map(PathBuf::from)),
    };
    if let Some(paths) = said.step_paths.clone().or_else(|| setting(PATHS)) {
        options.paths = read(PATHS, &paths)?;
    }
    if let Some(tools) = said.step_tools.clone().or_else(|| setting(TOOLS)) {
        options.tools = read(TOOLS, &tools)?;
    }
    options.share_tenants = said.step_share_tenants || switch(SHARE)?;
    options.host = Some(PathBuf::from(OWN_PROGRAM));
    // Files named by these settings contain tokens and keys.
    for (name, value) in settings() {
        if name.starts_with("NOETL_") && (name.ends_with("_FILE") || name == "NOETL_TLS_KEY") {
            options.own.add(value);
        }
    }
    if let Ok(file) = contexts::file() {
        options.own.add(file);
    }
    if let Some(names) = said.step_env.clone().or_else(|| setting(ENV)) {
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        options.environment.inherit = EnvPolicy::Only(names.map(str::to_owned).collect());
    }
    Ok(())
}

/// Parses a setting whose type has its own syntax.
fn read<T: std::str::FromStr<Err = String>>(name: &str, text: &str) -> Result<T, CliError> {
    text.parse().map_err(|error| CliError::new(ErrorKind::Config, format!("{name}: {error}")))
}

/// Adds the files of databases, and the directories in which the program stores its own files.
pub(crate) fn own(files: &mut OwnFiles, place: &StoreLocation, directories: &[PathBuf]) {
    let databases = match place {
        StoreLocation::One(database) => std::slice::from_ref(database),
        StoreLocation::Spread(shards) => &shards.shards,
    };
    for database in databases {
        if let Database::Sqlite(path) = database {
            files.add_database(path);
        }
    }
    directories.iter().for_each(|directory| files.add(directory));
}

/// Determines the isolation level: the requested one, or the highest one that this machine
/// supports.
///
/// # Errors
///
/// Returns a failure if this machine doesn't support the requested level or limits.
pub(crate) async fn settle(
    options: &mut Options,
    said: &IsolationArguments,
) -> Result<(), CliError> {
    let asked = said.step_isolation.clone().or_else(|| setting(LEVEL));
    let asked = asked.as_deref().map(str::trim).filter(|asked| *asked != "auto");
    let isolation = &options.isolation;
    let limits = isolation.memory_max.or(isolation.cpu_seconds_max).or(isolation.processes_max);
    let least = match () {
        () if isolation.no_network || isolation.private_tmp => Level::Namespaces,
        () if isolation.user.is_some() || isolation.users.is_some() => Level::Landlock,
        () if limits.is_some() || isolation.cgroup.is_some() => Level::Landlock,
        () => Level::None,
    };
    let settled = match asked {
        Some(text) => {
            options.isolation.level = read(LEVEL, text)?;
            options.prove_isolation().await
        }
        None => options.choose_isolation(least).await,
    };
    settled.map_err(|error| {
        let failure = CliError::new(ErrorKind::Config, error.message);
        match error.hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })
}

/// Parses a user given by numeric IDs or by a name known to this machine.
fn user(text: &str) -> Result<User, CliError> {
    let unknown = || {
        let message = format!("this machine knows no user '{text}' for steps");
        CliError::new(ErrorKind::Config, message).hint("give a name, or numbers as 1000:1000")
    };
    if let Some((uid, gid)) = text.split_once(':') {
        let (uid, gid) = (uid.parse(), gid.parse());
        return match (uid, gid) {
            (Ok(uid), Ok(gid)) => Ok(User { uid, gid }),
            _ => Err(unknown()),
        };
    }
    // Ask the system, because users may come from a network directory.
    let id = |what: &str| {
        let said = Command::new("id").args([what, "--", text]).output().ok()?;
        let said = said.status.success().then_some(said.stdout)?;
        String::from_utf8(said).ok()?.trim().parse().ok()
    };
    match (id("-u"), id("-g")) {
        (Some(uid), Some(gid)) => Ok(User { uid, gid }),
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_a_name_or_two_numbers() {
        assert_eq!(user("12:34").expect("numbers"), User { uid: 12, gid: 34 });
        assert_eq!(user("root").expect("a name"), User { uid: 0, gid: 0 });
        for wrong in ["", "nobody-of-that-name", "1:", "a:b", "-1:5", "-u"] {
            assert!(user(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_said_is_what_tools_are_told() {
        let mut options = Options::default();
        let said = IsolationArguments {
            step_user: Some("12:34".to_owned()),
            step_no_network: true,
            step_memory: Some(64),
            step_env: Some("PATH, LANG".to_owned()),
            ..IsolationArguments::default()
        };
        isolate(&mut options, &said).expect("it makes sense");
        let asked = Isolation {
            user: Some(User { uid: 12, gid: 34 }),
            no_network: true,
            memory_max: Some(64 << 20),
            ..Isolation::default()
        };
        assert_eq!(options.isolation, asked);
        let EnvPolicy::Only(names) = options.environment.inherit else { panic!("a list") };
        assert_eq!(names, ["PATH", "LANG"]);
    }
}
