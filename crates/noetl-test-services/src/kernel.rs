//! Kernel features that the isolation of steps needs, probed without the code under test.

use std::path::Path;
use std::process::Command;

use landlock::{AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _};

use crate::skip::{missing, unsupported};

/// A kernel feature that steps are isolated with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelFeature {
    /// Landlock of any version.
    Landlock,
    /// Namespaces for mounts, processes, and, unless this process is root, users.
    Namespaces,
    /// Namespaces for networks as well.
    NetworkNamespaces,
}

impl KernelFeature {
    /// Returns `Ok` if this process may use the feature, else the reason.
    ///
    /// Namespaces need the program `unshare`.
    ///
    /// # Panics
    ///
    /// Panics if `CI` is set and `unshare` is not installed.
    fn probe(self) -> Result<(), String> {
        match self {
            Self::Landlock => landlock(),
            Self::Namespaces => unshare(&[]),
            Self::NetworkNamespaces => unshare(&["--net"]),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Landlock => "Landlock",
            Self::Namespaces => "namespaces of users, mounts, and processes",
            Self::NetworkNamespaces => "namespaces of networks",
        }
    }
}

/// Returns the highest isolation level, from 0 to 2, that the kernel allows without users for steps.
pub fn isolation_level() -> u8 {
    let features = [KernelFeature::Landlock, KernelFeature::Namespaces];
    features.into_iter().take_while(|feature| feature.probe().is_ok()).map(|_| 1).sum()
}

/// Records that steps cannot be isolated, because the kernel lacks one of the `needed` features. The
/// calling test returns early, under CI too.
///
/// `host` is the program of the step host, and `error` its reason.
///
/// # Panics
///
/// Panics if the kernel has all of the features: the step host fails, not the machine.
pub fn not_isolated(needed: &[KernelFeature], host: &Path, error: &str) {
    for feature in needed {
        if let Err(reason) = feature.probe() {
            return unsupported(feature.name(), &reason);
        }
    }
    panic!("{}", failure(needed, host, error));
}

fn failure(needed: &[KernelFeature], host: &Path, error: &str) -> String {
    let (host_name, state) =
        (host.display(), if host.exists() { "does not start" } else { "is missing" });
    let names: Vec<&str> = needed.iter().map(|feature| feature.name()).collect();
    format!(
        "step host {host_name} {state}, although the kernel has {}: {error}; build it with \
         `cargo build --locked --workspace --bins`",
        names.join(", ")
    )
}

fn landlock() -> Result<(), String> {
    let made = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::MakeChar)
        .and_then(Ruleset::create);
    made.map(drop).map_err(|error| format!("use a kernel with Landlock: {error}"))
}

fn unshare(more: &[&str]) -> Result<(), String> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--ipc", "--fork", "--mount-proc"]).args(more);
    if !is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let Ok(output) = command.arg("true").output() else {
        missing("unshare", "apt-get install util-linux");
        return Err("apt-get install util-linux".to_owned());
    };
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "allow namespaces, or run the tests as root: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// Returns `true` if this process has the rights of root.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_step_host_is_reported_with_its_error_and_features() {
        let needed = [KernelFeature::Landlock, KernelFeature::Namespaces];
        let text = failure(&needed, Path::new("/not/there"), "no such file");
        for part in ["step host /not/there is missing", "Landlock, namespaces", "no such file"] {
            assert!(text.contains(part), "{text}");
        }
        let text = failure(&needed, Path::new("/"), "refused");
        assert!(text.starts_with("step host / does not start"), "{text}");
    }

    #[test]
    #[should_panic(expected = "step host /not/there is missing")]
    fn a_missing_step_host_fails_tests_on_a_capable_kernel() {
        not_isolated(&[], Path::new("/not/there"), "no such file");
    }
}
