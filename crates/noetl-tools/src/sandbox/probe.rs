//! Probes the machine's isolation support by starting a host and running a script in it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use noetl_model::Tenant;
use tokio::io::AsyncReadExt as _;

use super::{HostedStep, Pipes, Program, Sandbox};
use crate::isolation::Level;
use crate::{Isolation, IsolationError, Options};

/// Script that prints its user, network devices, temporary directory, and limits, one per line, and
/// its control group, whose path is relative to the root of the hierarchy.
const LOOK: &str = r#"id -u; id -g; grep -cv '^ *lo:\||' /proc/self/net/dev || true
ls -A "$TMPDIR/../.." | grep -c . || true
ulimit -v; ulimit -t; (: >proof) && echo writable
cat /proc/self/cgroup"#;

/// Requirements of each level, shown to an operator whose machine doesn't meet them.
const HINT: &str = "level 1 needs a kernel with Landlock (5.13), level 2 the right to make \
                    namespaces, level 3 root and users for steps";

/// Selects the highest supported level, at least `least`.
pub(super) async fn choose(options: &mut Options, least: Level) -> Result<(), IsolationError> {
    let has_user = options.isolation.user.is_some() || options.isolation.users.is_some();
    let best = if has_user { Level::User } else { Level::Namespaces };
    let mut refused = None;
    for level in Level::ALL.into_iter().rev().filter(|level| (least..=best).contains(level)) {
        options.isolation.level = level;
        match prove(options).await {
            Ok(()) => return Ok(()),
            Err(error) => drop(refused.get_or_insert(error)),
        }
    }
    Err(refused.unwrap_or_else(|| IsolationError {
        message: format!("isolation level {least} is not available"),
        hint: Some(HINT),
    }))
}

pub(super) async fn prove(options: &Options) -> Result<(), IsolationError> {
    let asked = &options.isolation;
    asked.check()?;
    if asked.is_off() {
        return Ok(());
    }
    let failed = |message: String| {
        let message = format!("isolation level {} is not available: {message}", asked.level);
        IsolationError { message, hint: Some(HINT) }
    };
    let sandbox = Arc::new(Sandbox::new(Arc::new(options.clone())));
    let host = sandbox.start(&Tenant::default()).await;
    let host = host.map_err(|failure| failed(failure.message))?;
    // The host reports failures of namespaces and Landlock; a script inside checks the other
    // settings.
    if !needs_a_look(asked) {
        return Ok(());
    }
    let dir = host.step_dir().map_err(|failure| failed(failure.message))?;
    let seen = look(&sandbox, host, dir.path()).await;
    let seen = seen.map_err(|error| failed(error.to_string()))?;
    compare(asked, &seen).map_err(failed)
}

fn needs_a_look(asked: &Isolation) -> bool {
    let Isolation {
        level: _,
        user,
        users,
        no_network,
        private_tmp,
        memory_max,
        cpu_seconds_max,
        processes_max,
        cgroup,
    } = asked;
    let limits = memory_max.or(*cpu_seconds_max).or(*processes_max);
    let is_moved = user.is_some() || users.is_some() || cgroup.is_some();
    *no_network || *private_tmp || limits.is_some() || is_moved
}

async fn look(sandbox: &Arc<Sandbox>, host: super::Host, dir: &Path) -> io::Result<String> {
    let (mut pipes, [stdout, stderr]) = Pipes::open()?;
    let null = std::fs::File::open("/dev/null")?;
    let words = ["sh", "-c", LOOK].map(str::to_owned).to_vec();
    let program = Program {
        words: sandbox.options.isolation.limited(words),
        env: vec![("TMPDIR".to_owned(), dir.display().to_string())],
        cwd: dir.to_owned(),
    };
    let files = vec![null.into(), stdout, stderr];
    let tenant = Tenant::default();
    let mut step = HostedStep::start(sandbox, &tenant, host, program, files).await?;
    let (mut seen, mut complaint) = (String::new(), String::new());
    let (status, _, _) = tokio::join!(
        step.wait(),
        pipes.stdout.read_to_string(&mut seen),
        pipes.stderr.read_to_string(&mut complaint),
    );
    if !status?.success() {
        let last = complaint.lines().last().unwrap_or("a program in it failed").to_owned();
        return Err(io::Error::other(last));
    }
    Ok(seen)
}

fn compare(asked: &Isolation, seen: &str) -> Result<(), String> {
    let mut lines = seen.lines();
    let mut next = || lines.next().unwrap_or_default();
    let (uid, gid, devices, places) = (next(), next(), next(), next());
    let (memory, cpu, writable) = (next(), next(), next());
    let differs = |what: &str, seen: &str| {
        Err(format!("{what} was asked for, but a program that was isolated so sees {seen}"))
    };
    if let Some(user) = asked.user
        && [uid.parse(), gid.parse()] != [Ok(user.uid), Ok(user.gid)]
    {
        return differs("another user", &format!("user {uid} and group {gid}"));
    }
    if asked.no_network && devices != "0" {
        return differs("no network", &format!("{devices} devices"));
    }
    if asked.private_tmp && places != "1" {
        return differs("a directory for temporary files of its own", &format!("{places} in it"));
    }
    if asked.memory_max.is_some_and(|limit| memory != (limit / 1024).to_string()) {
        return differs("a limit of memory", memory);
    }
    if asked.cpu_seconds_max.is_some_and(|limit| cpu != limit.to_string()) {
        return differs("a limit of CPU time", cpu);
    }
    if writable != "writable" {
        return differs("a directory of its own", "one it cannot write to");
    }
    if let Some(name) = asked.cgroup.as_deref().and_then(Path::file_name)
        && !lines.any(|line| line.ends_with(&format!("/{}", name.to_string_lossy())))
    {
        return differs("a control group", "another");
    }
    Ok(())
}
