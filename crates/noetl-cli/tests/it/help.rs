use insta::assert_snapshot;

use crate::noetl::{Home, Said};

fn help(arguments: &[&str]) -> String {
    let home = Home::new();
    let Said { code, stdout, stderr } = home.end_of(home.command(arguments).arg("--help"));
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    // Help wraps paragraphs with trailing blanks, which no editor keeps.
    stdout.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_help_of_the_program_names_its_verbs_and_exit_codes() {
    assert_snapshot!(help(&[]), @r"
    Runs workflows: playbooks in YAML, every transition in one log that can be replayed

    Usage: noetl <COMMAND>

    Commands:
      run           Run a playbook to its end, here and now
      check         Check playbooks and say what is wrong with them, where, and what would be right
      dev           Start the control plane with a worker on an embedded database
      server        Start the control plane alone, on a database that is named; workers are other
                    processes
      worker        Run the steps of a server's executions, as a process of its own
      db            Look after the database
      register      Register documents at a server
      catalog       Work with the documents of a server
      list          List the documents of a kind
      execute       Start a registered playbook at a server
      status        Say how an execution stands
      executions    List executions, newest first
      events        Print the log of an execution
      replay        Say what the log of an execution tells, up to any event or time
      why           Say what an execution waits for, or why it ended
      logs          Print what the steps of an execution printed
      cancel        Stop an execution
      retry         Do again what failed in an execution, in a new one that begins with its past
      rerun         Start a new execution with the workload of another
      fork          Start a new execution with the past of another, up to any event
      cleanup       Stop executions that have run for long
      credential    Keep credentials at a server
      get           Read one thing from a server
      query         Run SQL on the database of a server that keeps its data in Postgres
      ehdb          Read the log of a server, every id as text
      subscription  Work with subscriptions
      schedule      Work with schedules
      workers       List the workers of a server
      token         Make, list and end the tokens callers show
      grant         Limit roles to paths, and credentials to playbooks
      audit         Say who asked for which secret, and whether that is all that was recorded
      doctor        Say whether server, token and this machine are as they have to be
      context       Keep the addresses of several servers, and choose one
      completions   Print a completion script for a shell [alias: completion]
      help          Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Exit codes: 0 well, 1 the execution ended badly, 2 the playbook or the call is wrong,
    3 the surroundings are (database in use, port taken, disk full), 70 a defect, 130 interrupted.
    ");
}

#[test]
fn the_help_of_run_is_stable() {
    assert_snapshot!(help(&["run"]), @r"
    Run a playbook to its end, here and now

    Usage: noetl run [OPTIONS] <FILE>

    Arguments:
      <FILE>
              The playbook; `-` reads it from stdin. With `--runtime distributed`, its path in the
              catalog

    Options:
          --set <KEY=VALUE>
              Set a workload value: `--set who=Ada`, `--set limits.max=3`. What reads as JSON is JSON,
              anything else is text; `workload.` before a key is left out. Wins over --payload

          --payload <JSON|FILE>
              A JSON object laid over the workload: itself, a file, or `-` for stdin. Wins over --input

              [alias: --workload]

      -i, --input <JSON|FILE>
              The same, below --payload

          --credentials <FILE>
              Keep these credentials for the run, under the names playbooks use in `auth`: a YAML or
              JSON file of `{name, type, data}`, or a list of them. Can be given several times

          --db <PATH>
              Keep the log in this database file instead of in memory

          --database-url <URL>
              Keep the log in this database instead of in memory: `sqlite://path`, or
              `postgres://user:password@host:port/database`

          --slots <N>
              How many steps run at a time

              [default: 16]

          --approve
              Give every approval the playbook asks for. Without it, and at a terminal, you are asked

          --dry-run
              Say what is wrong with the playbook and the payload, and run nothing

          --output <OUTPUT>
              How to print the outcome

              Possible values:
              - text: For people
              - json: For programs

              [default: text]

      -j, --json
              The same as --output json

      -h, --help
              Print help (see a summary with '-h')

    Server:
      -r, --runtime <RUNTIME>
              Where it runs

              Possible values:
              - auto:        The same as local
              - local:       Here, to its end
              - distributed: At a server that has it in its catalog; the same as `noetl execute`

              [default: auto]

      -V, --version <N>
              The version to start; the highest when left out

          --server-url <URL>
              The server to start it at, as `noetl execute` finds it when left out

              [alias: --endpoint]

          --context <NAME>
              The server of this context

          --token <TOKEN>
              The token to show
    ");
}

#[test]
fn the_help_of_check_is_stable() {
    assert_snapshot!(help(&["check"]), @r"
    Check playbooks and say what is wrong with them, where, and what would be right

    Usage: noetl check [OPTIONS] <FILES>...

    Arguments:
      <FILES>...
              The playbooks; `-` reads one from stdin

    Options:
          --fix
              Rewrite older shapes to the newest dialect where that is certain, and keep comments. What
              came from stdin goes to stdout

          --dry-run
              Print what --fix would change instead of writing it

          --against <PATH|ID>
              Decide recorded executions again with this playbook, and show the first decision of each
              that would differ: an execution's id, or a catalog path for its newest executions

          --last <N>
              With --against and a path: how many executions

              [default: 20]

          --data <DIR>
              With --against: where the database of `noetl dev` is kept

              [env: NOETL_DATA=]
              [default: noetl-data]

          --database-url <URL>
              With --against: the database itself: `sqlite://path`, or
              `postgres://user:password@host:port/database`

              [env: NOETL_DATABASE_URL]

          --output <OUTPUT>
              How to print what was found

              Possible values:
              - text: For people
              - json: For programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')
    ");
}

#[test]
fn the_help_of_dev_is_stable() {
    assert_snapshot!(help(&["dev"]), @r"
    Start the control plane with a worker on an embedded database

    Usage: noetl dev [OPTIONS]

    Options:
          --host <HOST>         The address to listen on. One that is not loopback takes no --auth open
                                [env: NOETL_HOST=] [default: 127.0.0.1]
          --port <PORT>         The port to listen on; 0 picks a free one [env: NOETL_PORT=] [default:
                                8082]
          --auth <MODE>         Authentication of callers: `token`, which is created and stored for you
                                on this machine; `oidc`, an identity provider; or `open`, which lets
                                every user and program of this machine do everything [env: NOETL_AUTH]
                                [default: token]
          --data <DIR>          Where the database is kept [env: NOETL_DATA=] [default: noetl-data]
          --database-url <URL>  Keep everything in this database instead: `sqlite://path`, or
                                `postgres://user:password@host:port/database` [env: NOETL_DATABASE_URL]
          --slots <N>           How many steps the worker in this process runs at a time; 0 for those
                                who bring their own [env: NOETL_SLOTS=] [default: 16]
          --nats-url <URL>      The NATS server commands are announced and events are published on,
                                `nats://user:password@host:port`; several of a cluster are parted by
                                commas. Events are published when NOETL_EVENT_STREAM_ENABLED or
                                NOETL_OUTBOX_RELAY says how [env: NOETL_NATS_URL]
      -h, --help                Print help

    What is removed once a day, if any of these is given:
          --event-retention-days <N>    Finished executions with everything they have, in days since
                                        their last event [default: 0] [env: NOETL_EVENT_RETENTION_DAYS=]
          --command-retention-days <N>  Commands of finished executions, in days since they ended
                                        [default: 7] [env: NOETL_COMMAND_RETENTION_DAYS=]
          --runtime-stale-minutes <N>   Worker pools, in minutes since their last heartbeat [default:
                                        60] [env: NOETL_RUNTIME_STALE_MINUTES=]
          --outbox-retention-days <N>   Published rows of the outbox, in days [default: 7] [env:
                                        NOETL_OUTBOX_RETENTION_DAYS=]
          --dedup-retention-days <N>    Messages that subscriptions have seen, in days [default: 7]
                                        [env: NOETL_DEDUP_RETENTION_DAYS=]
          --audit-retention-days <N>    The audit of secrets, in days [default: 90] [env:
                                        NOETL_AUDIT_RETENTION_DAYS=]
    ");
}

#[test]
fn the_help_of_db_names_its_verbs() {
    assert_snapshot!(help(&["db"]), @r"
    Look after the database

    Usage: noetl db <COMMAND>

    Commands:
      migrate   Bring the schema up to date, and make the database when there is none [alias: init]
      validate  Check the database and every log in it. Changes nothing
      stats     Say how many rows and bytes each table has
      backup    Copy an embedded database to a new file, also while a server runs on it
      purge     Remove what is old. Nothing that can still move is touched
      help      Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help
    ");
}

#[test]
fn the_help_of_execute_says_which_server_is_asked() {
    assert_snapshot!(help(&["execute"]), @r"
    Start a registered playbook at a server

    Usage: noetl execute [OPTIONS] <PATH>

    Arguments:
      <PATH>
              The playbook's path in the catalog

    Options:
      -V, --version <N>
              Its version; the highest when left out

          --set <KEY=VALUE>
              Set a workload value: `--set who=Ada`, `--set limits.max=3`. What reads as JSON is JSON,
              anything else is text; `workload.` before a key is left out. Wins over --payload

          --payload <JSON|FILE>
              A JSON object laid over the workload: itself, a file, or `-` for stdin. Wins over --input

              [alias: --workload]

      -i, --input <JSON|FILE>
              The same, below --payload

          --pool <NAME>
              Which workers its commands go to

      -f, --follow
              Print its events until it is over, and end as it does

      -h, --help
              Print help (see a summary with '-h')

    Server:
          --server-url <URL>
              The server, as http://host:8082. Else NOETL_SERVER_URL, else the current context, else
              http://127.0.0.1:8082

          --host <HOST>
              The server's host, with --port

      -p, --port <PORT>
              The server's port, with --host

          --context <NAME>
              The server of this context; see `noetl context`

          --token <TOKEN>
              The token to show. Else NOETL_TOKEN, NOETL_SESSION_TOKEN, or the one of the context

    Output:
          --output <OUTPUT>
              How to print the answer [default: table]

              Possible values:
              - table: For people
              - json:  What the server answered
              - yaml:  The same as YAML

      -j, --json
              The same as --output json
    ");
}

#[test]
fn the_help_of_groups_names_their_verbs() {
    assert_snapshot!(help(&["catalog"]), @r"
    Work with the documents of a server

    Usage: noetl catalog <COMMAND>

    Commands:
      register  Register documents of any kind; `-` is stdin
      load      Register documents in batches: files, and every YAML file of directories and below
      list      List documents, the newest version of each
      get       Print a document
      validate  Say what is wrong with documents, and keep nothing
      help      Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help
    ");
    assert_snapshot!(help(&["token"]), @r"
    Make, list and end the tokens callers show

    Usage: noetl token <COMMAND>

    Commands:
      create  Make a token. It is printed this once
      list    List tokens; those that do not count any more, too
      revoke  End a token
      header  Print the header that shows the token for a server, for curl: `curl --header @<(noetl
              token header) URL`
      link    Print a link that signs a browser in, once and within ten minutes
      help    Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help
    ");
    assert_snapshot!(help(&["audit"]), @r"
    Say who asked for which secret, and whether that is all that was recorded

    Usage: noetl audit <COMMAND>

    Commands:
      list    List who asked for which secret, latest first
      export  Write the records of the audit as JSON lines, oldest first, or send them to syslog
      verify  Check in the database that nothing of the audit was changed, removed or moved, and that
              every encrypted value is where it was sealed. Changes nothing
      help    Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help
    ");
    assert_snapshot!(help(&["context"]), @r"
    Keep the addresses of several servers, and choose one

    Usage: noetl context <COMMAND>

    Commands:
      add      Keep a server under a name
      update   Change what is kept under a name
      use      Use a context from now on
      list     List contexts; the current one is marked
      current  Print the current context
      delete   Forget a context
      help     Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help
    ");
    assert_snapshot!(help(&["subscription"]), @r"
    Work with subscriptions

    Usage: noetl subscription <COMMAND>

    Commands:
      register    Register a subscription whose document is in the catalog
      list        List subscriptions; those that are over, too
      get         Say how a subscription stands
      events      Read its log: its moves, and what became of messages
      activate    Let it take messages
      pause       Let it take no messages for now
      resume      Let it go on after a pause
      drain       Let it finish what it has, and take nothing more
      deactivate  End it
      help        Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help
    ");
    assert_snapshot!(help(&["schedule"]), @r"
    Work with schedules

    Usage: noetl schedule <COMMAND>

    Commands:
      list    List schedules, with their next runs
      get     Say how a schedule stands
      create  Make a schedule. A document of kind Schedule that is registered makes one too
      pause   Let a schedule rest
      resume  Let a schedule run again
      run     Start what a schedule starts, now
      delete  Delete a schedule
      help    Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help
    ");
    assert_snapshot!(help(&["credential"]), @r"
    Keep credentials at a server

    Usage: noetl credential <COMMAND>

    Commands:
      set     Keep a credential, in the place of any that has its name
      list    List credentials, without what is secret
      get     Print a credential
      delete  Remove a credential
      reseal  Bind every encrypted value of a database to its tenant and name
      help    Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help
    ");
}

#[test]
fn completion_is_another_name_for_completions() {
    let home = Home::new();
    let (one, other) = (home.noetl(["completions", "bash"]), home.noetl(["completion", "bash"]));
    assert_eq!((other.code, &other.stdout), (Some(0), &one.stdout));
}

#[test]
fn the_help_of_completions_is_stable() {
    assert_snapshot!(help(&["completions"]), @r"
    Print a completion script for a shell

    Usage: noetl completions <SHELL>

    Arguments:
      <SHELL>  The shell [possible values: bash, elvish, fish, powershell, zsh]

    Options:
      -h, --help  Print help
    ");
}

#[test]
fn the_help_of_worker_is_stable() {
    assert_snapshot!(help(&["worker"]), @r"
    Run the steps of a server's executions, as a process of its own

    Usage: noetl worker [OPTIONS]

    Options:
          --slots <N>              How many steps run at a time. Else NOETL_WORKER_SLOTS [default: 16]
          --pool <POOL>            The pool whose steps it takes. Else NOETL_WORKER_POOL [default:
                                   shared]
          --label <KEY=VALUE>      What the worker says of itself, to be seen in the list of workers.
                                   Can be given several times. Besides NOETL_WORKER_LABELS, where they
                                   are parted by commas
          --name <NAME>            Its name, which no other process has. Else NOETL_WORKER_NAME
                                   [default: one of its own]
          --listen <ADDRESS:PORT>  Where it answers `GET /health` and `GET /metrics`; port 0 picks a
                                   free one. Else NOETL_WORKER_LISTEN [default: nowhere]
          --result-max <MIB>       How many mebibytes the result of a step may have. Else
                                   NOETL_WORKER_RESULT_MAX_MB [default: 64]
          --grace <SECONDS>        How many seconds running steps may take to end when it is told to
                                   stop; what is left is given back. Else NOETL_WORKER_GRACE_SECS
                                   [default: 30]
      -h, --help                   Print help

    Server:
          --server <URL>       The server to work for, as http://host:8082. Else NOETL_SERVER_URL, else
                               the current context, else http://127.0.0.1:8082 [alias: --server-url]
          --context <NAME>     The server of this context; see `noetl context`
          --token-file <FILE>  File that holds the token to show, of role worker; `-` reads stdin. Else
                               NOETL_TOKEN_FILE
          --token <TOKEN>      Token to show, of role worker. Else NOETL_TOKEN, or the one of the
                               context. A file keeps it out of the arguments and the environment, which
                               other processes may read while the worker starts
          --nats-url <URL>     The NATS server on which commands are announced,
                               `nats://user:password@host:port`, so that the worker asks when there is
                               something; several of a cluster are parted by commas. Else NOETL_NATS_URL
                               [default: none, the server is asked and holds the call]

    Subscriptions:
          --subscriptions        Acts on subscriptions too: on every one that fetches its messages from
                                 a source. Several such workers share them, one acting on each at a time
          --subscription <PATH>  Acts on the subscription of this path and runs no steps: registers and
                                 activates it, and drains and deactivates it at its end unless another
                                 waits to take over. Else NOETL_SUBSCRIPTION_PATH where WORKER_MODE is
                                 `subscription`

    Isolation of steps:
          --step-isolation <LEVEL>      Level to isolate steps at: 0 none, 1 Landlock and a subreaper, 2
                                        namespaces, 3 users of their own, or auto for the best up to 2
                                        that this machine allows (3 with users). Else
                                        NOETL_STEP_ISOLATION [default: auto]
          --step-users <FIRST-LAST>     Users to run steps as, one for each tenant: numbers as
                                        `200000-265535`. The worker has to be root. Else
                                        NOETL_STEP_USERS
          --step-paths <PATHS>          Directories that steps may use beside those of the system, `=ro`
                                        for reading only: `/srv/data,/srv/shared=ro; TENANT:
                                        /srv/tenant`. Else NOETL_STEP_PATHS [default: all]
          --step-tools <KINDS>          Kinds of tools that steps may use: `shell,http; TENANT: http`.
                                        Else NOETL_STEP_TOOLS [default: all]
          --step-share-tenants          Run steps of several tenants though the level does not keep them
                                        apart (below 2). The same as NOETL_STEP_SHARE_TENANTS=true
          --step-user <USER>            Whom they run as: a name, or numbers as `1000:1000`. The worker
                                        has to be root. Else NOETL_STEP_USER [default: the worker's
                                        user]
          --step-no-network             They have no network. The same as NOETL_STEP_NO_NETWORK=true
          --step-private-tmp            Each has temporary files of its own, in memory. The same as
                                        NOETL_STEP_PRIVATE_TMP=true
          --step-memory <MIB>           How many mebibytes of address space each process may have. Else
                                        NOETL_STEP_MEMORY_MB
          --step-cpu-seconds <SECONDS>  How many seconds each process may compute. Else
                                        NOETL_STEP_CPU_SECONDS
          --step-processes <N>          How many processes their user may have in all. Else
                                        NOETL_STEP_PROCESSES
          --step-cgroup <DIRECTORY>     The control group (version 2) they are put into, whose limits
                                        hold for all of them together. Else NOETL_STEP_CGROUP
          --step-env <NAMES>            Which of the worker's variables they see, parted by commas. Else
                                        NOETL_STEP_ENV [default: PATH,HOME,LANG,TMPDIR]
    ");
}

#[test]
fn the_version_names_the_commit_it_was_built_from() {
    let said = Home::new().noetl(["--version"]);
    let version = said.stdout.trim().strip_prefix("noetl ").unwrap();
    let (number, commit) = version.split_once(' ').unwrap();
    assert_eq!(number, env!("CARGO_PKG_VERSION"));
    let commit = commit.trim_matches(['(', ')']);
    let is_hash = commit.len() == 12 && commit.chars().all(|c| c.is_ascii_hexdigit());
    assert!(is_hash || commit == "unknown", "{commit}");
}

#[test]
fn every_shell_gets_a_completion_script() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let said = Home::new().noetl(["completions", shell]);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
        assert!(said.stdout.contains("completions"), "{shell}: {}", said.stdout);
    }
}

#[test]
fn a_verb_that_does_not_exist_is_a_wrong_call() {
    let said = Home::new().noetl(["chekc"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""));
    assert!(said.stderr.contains("a similar subcommand exists: 'check'"), "{}", said.stderr);
}

#[test]
fn the_help_of_the_published_verbs_is_stable() {
    assert_snapshot!(help(&["catalog", "load"]), @r"
    Register documents in batches: files, and every YAML file of directories and below

    Usage: noetl catalog load [OPTIONS] <PATHS>...

    Arguments:
      <PATHS>...
              The files and directories

    Options:
          --batch-size <N>
              The most documents of one request

              [default: 100]

          --dry-run
              Say what would be sent, and send nothing

          --force
              Register documents with errors, too

      -h, --help
              Print help (see a summary with '-h')

    Server:
          --server-url <URL>
              The server, as http://host:8082. Else NOETL_SERVER_URL, else the current context, else
              http://127.0.0.1:8082

          --host <HOST>
              The server's host, with --port

      -p, --port <PORT>
              The server's port, with --host

          --context <NAME>
              The server of this context; see `noetl context`

          --token <TOKEN>
              The token to show. Else NOETL_TOKEN, NOETL_SESSION_TOKEN, or the one of the context

    Output:
          --output <OUTPUT>
              How to print the answer [default: table]

              Possible values:
              - table: For people
              - json:  What the server answered
              - yaml:  The same as YAML

      -j, --json
              The same as --output json
    ");
    assert_snapshot!(help(&["query"]), @r"
    Run SQL on the database of a server that keeps its data in Postgres

    Usage: noetl query [OPTIONS] <SQL>

    Arguments:
      <SQL>
              The statement

    Options:
      -s, --schema <NAME>
              The schema its names are looked for in

              [default: noetl]

      -f, --format <FORMAT>
              The same as --output

              Possible values:
              - table: For people
              - json:  What the server answered
              - yaml:  The same as YAML

      -h, --help
              Print help (see a summary with '-h')

    Server:
          --server-url <URL>
              The server, as http://host:8082. Else NOETL_SERVER_URL, else the current context, else
              http://127.0.0.1:8082

          --host <HOST>
              The server's host, with --port

      -p, --port <PORT>
              The server's port, with --host

          --context <NAME>
              The server of this context; see `noetl context`

          --token <TOKEN>
              The token to show. Else NOETL_TOKEN, NOETL_SESSION_TOKEN, or the one of the context

    Output:
          --output <OUTPUT>
              How to print the answer [default: table]

              Possible values:
              - table: For people
              - json:  What the server answered
              - yaml:  The same as YAML

      -j, --json
              The same as --output json
    ");
    assert_snapshot!(help(&["ehdb", "query"]), @r"
    Read executions and events

    Usage: noetl ehdb query <COMMAND>

    Commands:
      executions  List executions
      execution   Say how an execution stands
      events      List events of an execution, oldest first
      help        Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help
    ");
}
