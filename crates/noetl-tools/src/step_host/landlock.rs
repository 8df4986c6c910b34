//! Landlock: restricts the files that a step's programs may use, and denies access to outside
//! processes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
};

use super::{OWN_PROGRAM, named};
use crate::host_protocol::wire::HostSpec;
use crate::own::AllowedDirectory;

/// Newest requested Landlock version. Older kernels enforce the rights they support.
const NEWEST: ABI = ABI::V6;

/// System directories that programs need to run.
const SYSTEM: [&str; 12] = [
    "/bin",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix",
    "/opt",
    "/run/systemd/resolve",
    "/sbin",
    "/sys",
    "/usr",
];

/// Devices and process information, which programs also write to.
const DEVICES: [&str; 2] = ["/dev", "/proc"];

/// Confines the calling thread. Outside processes cannot be traced or signaled, and no device nodes
/// can be created. With roots, only files in them and in the system's directories can be used.
pub(super) fn restrict(spec: &HostSpec) -> io::Result<()> {
    let rules = rules(spec);
    let handled = match rules {
        Some(_) => AccessFs::from_all(NEWEST),
        None => AccessFs::MakeBlock | AccessFs::MakeChar,
    };
    let status = apply(handled, rules.unwrap_or_default());
    let status = status.map_err(|error| named("Landlock", &io::Error::other(error)))?;
    match status {
        RulesetStatus::NotEnforced => {
            Err(io::Error::other("Landlock: this kernel does not have it, or it is off"))
        }
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

fn apply(
    handled: BitFlags<AccessFs>,
    rules: Vec<(PathBuf, BitFlags<AccessFs>)>,
) -> Result<RulesetStatus, landlock::RulesetError> {
    let mut created = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(handled)?
        .scope(Scope::Signal)?
        .create()?;
    for (path, access) in rules {
        created = allow(created, &path, access)?;
    }
    Ok(created.restrict_self()?.ruleset)
}

/// Adds a rule. A missing path needs none.
fn allow(
    created: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, landlock::RulesetError> {
    let Ok(file) = PathFd::new(path) else { return Ok(created) };
    // Directory rights are invalid for a file.
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
    created.add_rule(PathBeneath::new(file, access))
}

/// Returns the files that steps may use, or `None` for all.
fn rules(spec: &HostSpec) -> Option<Vec<(PathBuf, BitFlags<AccessFs>)>> {
    let (read, all) = (AccessFs::from_read(NEWEST), AccessFs::from_all(NEWEST));
    let mut rules: Vec<(PathBuf, BitFlags<AccessFs>)> = Vec::new();
    match &spec.roots {
        Some(roots) => {
            rules.extend(SYSTEM.iter().map(|path| (PathBuf::from(path), read)));
            rules.extend(DEVICES.iter().map(|path| (PathBuf::from(path), all)));
            rules.push((OWN_PROGRAM.into(), read));
            rules.extend(roots.iter().map(|AllowedDirectory { path, writable }| {
                (path.clone(), if *writable { all } else { read })
            }));
            if spec.private_tmp {
                let shared = super::namespaces::shared(spec);
                rules.extend(shared.map(|path| (path.to_owned(), all)));
            }
        }
        None if spec.withheld.is_empty() => return None,
        None => rules.extend(all_but(&spec.withheld).into_iter().map(|path| (path, all))),
    }
    rules.push((spec.dir.clone(), all));
    Some(rules)
}

/// Returns paths that together cover the whole file system except `withheld`: the current entries
/// of each directory that leads to one of those.
fn all_but(withheld: &[PathBuf]) -> Vec<PathBuf> {
    let mut allowed = Vec::new();
    let mut pending = vec![PathBuf::from("/")];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if withheld.contains(&path) {
                continue;
            }
            match withheld.iter().any(|file| file.starts_with(&path)) {
                true => pending.push(path),
                false => allowed.push(path),
            }
        }
    }
    allowed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_except_a_withheld_file_is_allowed() {
        let home = tempfile::TempDir::new().expect("a directory");
        let home = home.path().canonicalize().expect("a path");
        for name in ["token", "data", "other"] {
            fs::write(home.join(name), "").expect("a file");
        }
        let allowed = all_but(&[home.join("token")]);
        assert!(allowed.contains(&home.join("data")) && allowed.contains(&home.join("other")));
        assert!(!allowed.iter().any(|path| home.join("token").starts_with(path)), "{allowed:?}");
        assert!(allowed.contains(&PathBuf::from("/usr")), "{allowed:?}");
    }
}
