//! Settings of the tools that steps run, and of their isolation.

use std::path::PathBuf;

use crate::kind::Kind;
use crate::setting::{Setting, section};

section! {
    /// Addresses that steps, notifications, and subscriptions may reach over HTTP.
    Egress = "egress" {
        /// Addresses that may be reached without being listed: `off` for all, `metadata` for all
        /// but metadata services of clouds, `private` for public ones, `listed` for none.
        fence: String = Setting::new(
            Kind::Choice(&["off", "metadata", "private", "listed"]),
            &["NOETL_HTTP_FENCE"],
        ).default("metadata").guarded();
        /// Hosts, addresses, and networks that may be reached in addition.
        allow: Option<Vec<String>> = Setting::new(Kind::List, &["NOETL_HTTP_ALLOW"]).guarded();
    }
}

section! {
    /// Programs and isolation of steps. The flags are those of `noetl worker`.
    Steps = "steps" {
        /// Python interpreter of steps: a path, or a name in `PATH`.
        python: PathBuf =
            Setting::new(Kind::Path, &["NOETL_PYTHON"]).default("python3").guarded();
        /// Isolation level of steps: 0 none, 1 Landlock and a subreaper, 2 namespaces, 3 separate
        /// users, or auto for the highest level up to 2 that this machine supports (3 with
        /// --step-users).
        isolation: Option<String> = Setting::new(Kind::Text, &["NOETL_STEP_ISOLATION"])
            .note("auto").flag("step-isolation", "LEVEL").guarded();
        /// User IDs to run steps as, one per tenant, such as `200000-265535`. Requires root.
        users: Option<String> = Setting::new(Kind::Text, &["NOETL_STEP_USERS"])
            .flag("step-users", "FIRST-LAST").guarded();
        /// Directories that steps may use in addition to system directories, `=ro` for read-only:
        /// `/srv/data,/srv/shared=ro; TENANT: /srv/tenant`.
        paths: Option<String> = Setting::new(Kind::Text, &["NOETL_STEP_PATHS"])
            .note("all").flag("step-paths", "PATHS").guarded();
        /// Tool kinds that steps may use: `shell,http; TENANT: http`.
        tools: Option<String> = Setting::new(Kind::Text, &["NOETL_STEP_TOOLS"])
            .note("all").flag("step-tools", "KINDS").guarded();
        /// Run steps of several tenants even if the level doesn't isolate tenants (below 2).
        share_tenants: bool = Setting::new(Kind::Switch, &["NOETL_STEP_SHARE_TENANTS"])
            .default("false").flag("step-share-tenants", "").guarded();
        /// User to run steps as: a name, or IDs such as `1000:1000`. Requires root.
        user: Option<String> = Setting::new(Kind::Text, &["NOETL_STEP_USER"])
            .note("the worker's user").flag("step-user", "USER").guarded();
        /// Run steps without network access.
        no_network: bool = Setting::new(Kind::Switch, &["NOETL_STEP_NO_NETWORK"])
            .default("false").flag("step-no-network", "").guarded();
        /// Give each step its own in-memory temporary directory.
        private_tmp: bool = Setting::new(Kind::Switch, &["NOETL_STEP_PRIVATE_TMP"])
            .default("false").flag("step-private-tmp", "").guarded();
        /// Address space limit of each step process, in MiB.
        memory_mb: Option<u32> =
            Setting::new(Kind::Number { min: 16, max: 4_294_967_295 }, &["NOETL_STEP_MEMORY_MB"])
                .flag("step-memory", "MIB").guarded();
        /// CPU time limit of each step process, in seconds.
        cpu_seconds: Option<u32> =
            Setting::new(Kind::Number { min: 1, max: 4_294_967_295 }, &["NOETL_STEP_CPU_SECONDS"])
                .flag("step-cpu-seconds", "SECONDS").guarded();
        /// Maximum number of processes of the user that runs the steps.
        processes: Option<u32> =
            Setting::new(Kind::Number { min: 4, max: 4_294_967_295 }, &["NOETL_STEP_PROCESSES"])
                .flag("step-processes", "N").guarded();
        /// Control group (version 2) to run steps in; its limits apply to all steps together.
        cgroup: Option<PathBuf> = Setting::new(Kind::Path, &["NOETL_STEP_CGROUP"])
            .flag("step-cgroup", "DIRECTORY").guarded();
        /// Names of the worker's environment variables that steps inherit.
        env: Option<Vec<String>> = Setting::new(Kind::List, &["NOETL_STEP_ENV"])
            .note("PATH,HOME,LANG,TMPDIR").flag("step-env", "NAMES").guarded();
    }
}
