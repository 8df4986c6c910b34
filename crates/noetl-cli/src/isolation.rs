//! Configures the isolation of steps. The program doesn't start if
//! the machine doesn't support a requested level or limit.

use std::path::PathBuf;
use std::process::Command;

use noetl_config::tree::Steps;
use noetl_tools::{EnvPolicy, Isolation, Level, Options, OwnFiles, User};

use crate::contexts;
use crate::database::Database;
use crate::error::{CliError, ErrorKind};
use crate::settings;
use crate::stores::StoreLocation;

/// Path of the running executable. Stays valid if the file is replaced or removed.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Applies the settings of steps to the options of the tools.
pub(crate) fn isolate(options: &mut Options, steps: &Steps) -> Result<(), CliError> {
    if steps.user.is_some() && steps.users.is_some() {
        let message = "NOETL_STEP_USER and NOETL_STEP_USERS are both given";
        return Err(CliError::new(ErrorKind::Config, message).hint("leave one of them out"));
    }
    options.isolation = Isolation {
        level: Level::None,
        users: steps.users.as_deref().map(|users| read("steps.users", users)).transpose()?,
        user: steps.user.as_deref().map(|user| self::user(user.trim())).transpose()?,
        no_network: steps.no_network,
        private_tmp: steps.private_tmp,
        memory_max: steps.memory_mb.map(|mib| u64::from(mib) << 20),
        cpu_seconds_max: steps.cpu_seconds.map(u64::from),
        processes_max: steps.processes.map(u64::from),
        cgroup: steps.cgroup.clone(),
    };
    if let Some(paths) = &steps.paths {
        options.paths = read("steps.paths", paths)?;
    }
    if let Some(tools) = &steps.tools {
        options.tools = read("steps.tools", tools)?;
    }
    options.share_tenants = steps.share_tenants;
    options.host = Some(PathBuf::from(OWN_PROGRAM));
    // These files contain tokens and keys. A device, such as `/dev/null`, belongs to every program.
    let settings = settings::current();
    settings.secret_files().into_iter().for_each(|file| options.own.add(file));
    settings.files().filter(|file| file.is_file()).for_each(|file| options.own.add(file));
    if let Ok(file) = contexts::file() {
        options.own.add(file);
    }
    if let Some(names) = &steps.env {
        options.environment.inherit = EnvPolicy::Only(names.clone());
    }
    Ok(())
}

/// Parses a setting whose type has its own syntax.
fn read<T: std::str::FromStr<Err = String>>(key: &str, text: &str) -> Result<T, CliError> {
    text.parse().map_err(|error| {
        let variable = settings::variables_of(&[key]).first().copied().unwrap_or(key);
        let name = settings::current().name_of(variable);
        CliError::new(ErrorKind::Config, format!("{name}: {error}"))
    })
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
pub(crate) async fn settle(options: &mut Options, steps: &Steps) -> Result<(), CliError> {
    let asked = steps.isolation.as_deref().map(str::trim).filter(|asked| *asked != "auto");
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
            options.isolation.level = read("steps.isolation", text)?;
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
        let output = Command::new("id").args([what, "--", text]).output().ok()?;
        let output = output.status.success().then_some(output.stdout)?;
        String::from_utf8(output).ok()?.trim().parse().ok()
    };
    match (id("-u"), id("-g")) {
        (Some(uid), Some(gid)) => Ok(User { uid, gid }),
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use noetl_config::Settings;

    use super::*;
    use crate::arguments::{Flags, StepFlags};

    #[test]
    fn a_user_is_a_name_or_a_uid_and_gid() {
        assert_eq!(user("12:34").expect("numbers"), User { uid: 12, gid: 34 });
        assert_eq!(user("root").expect("a name"), User { uid: 0, gid: 0 });
        for wrong in ["", "nobody-of-that-name", "1:", "a:b", "-1:5", "-u"] {
            assert!(user(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tools_get_the_configured_isolation() {
        let mut options = Options::default();
        let flags = Flags::<StepFlags>::with_values([
            ("steps.user", Some("12:34")),
            ("steps.no_network", Some("true")),
            ("steps.memory_mb", Some("64")),
            ("steps.env", Some("PATH, LANG")),
        ]);
        let steps = flags.over(&Settings::default()).section().expect("settings");
        isolate(&mut options, &steps).expect("it makes sense");
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
