//! Environment variables that look like settings and are none.

use std::ffi::OsStr;

use crate::suggest;
use crate::tree::Options;

/// Variables that are no settings: those of steps, for `noetl` inside of a step, the name of the
/// file, and the variable of this project's build.
const OTHERS: [&str; 6] = [
    "NOETL_EXECUTION_ID",
    "NOETL_STEP",
    "NOETL_ATTEMPT",
    "NOETL_INPUT",
    "NOETL_CONFIG",
    "NOETL_COMMIT",
];

/// Prefix of variables of this project's tests.
const OF_TESTS: &str = "NOETL_TEST_";

/// Returns a warning for each `NOETL_*` variable that nothing reads.
///
/// `passed_on` are names that templates or steps may read. Variables that Kubernetes sets for a
/// service of that name are left out.
pub fn unknown_variables<'a>(
    names: impl IntoIterator<Item = &'a OsStr>,
    passed_on: &[String],
) -> Vec<String> {
    let known: Vec<&str> =
        Options::settings().flat_map(|setting| setting.variables.iter().copied()).collect();
    let mut names: Vec<&str> = names.into_iter().filter_map(OsStr::to_str).collect();
    names.sort_unstable();
    let services: Vec<&str> =
        names.iter().filter_map(|name| name.strip_suffix("_SERVICE_HOST")).collect();
    // Kubernetes describes a service `noetl-server` in `NOETL_SERVER_SERVICE_*` and
    // `NOETL_SERVER_PORT*`.
    let is_of_service = |name: &str| {
        let mut rest = services.iter().filter_map(|service| name.strip_prefix(service));
        rest.any(|rest| rest.starts_with("_SERVICE_") || rest.starts_with("_PORT"))
    };
    let is_unknown = |name: &&str| {
        name.starts_with("NOETL_")
            && !known.contains(name)
            && !OTHERS.contains(name)
            && !name.starts_with(OF_TESTS)
            && !is_of_service(name)
            && !passed_on.iter().any(|passed| passed == name)
    };
    let warning = |name: &str| match suggest::nearest(name, known.iter().copied()) {
        Some(nearest) => format!("unknown variable {name}; did you mean {nearest}?"),
        None => format!("unknown variable {name}"),
    };
    names.iter().copied().filter(is_unknown).map(warning).collect()
}
