use insta::assert_snapshot;

use crate::noetl::{CommandOutput, Home};

fn help(arguments: &[&str]) -> String {
    let home = Home::new();
    let CommandOutput { code, stdout, stderr } = home.end_of(home.command(arguments).arg("--help"));
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    // Help wraps paragraphs with trailing blanks, which no editor keeps.
    stdout.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_help_of_the_program_lists_verbs_and_exit_codes() {
    assert_snapshot!(help(&[]), @r"
    Run durable workflows defined in YAML

    Usage: noetl [OPTIONS] <COMMAND>

    Commands:
      run           Run a playbook locally to completion
      check         Check playbooks and report errors with location and fix
      dev           Start the control plane with a worker on an embedded database
      server        Start a server without a worker
      worker        Start a worker that runs steps for a server
      db            Inspect, back up, and purge the database
      register      Register documents on a server
      catalog       Manage the documents of a server
      list          List the documents of a kind
      execute       Start a registered playbook on a server
      status        Show the status of an execution
      executions    List executions, newest first
      events        Print the events of an execution
      replay        Show execution state at any event or time
      why           Explain what an execution waits for, or why it ended
      logs          Print the step logs of an execution
      cancel        Cancel a running execution
      retry         Retry the failed steps of an execution in a new execution that copies its earlier
                    events
      rerun         Start an execution with the workload of another
      fork          Start an execution from any event of another
      cleanup       Cancel executions that have run for a long time
      credential    Manage credentials on a server
      get           Print one object of a server
      query         Run SQL on the Postgres database of a server
      ehdb          Query executions and events of a server, with every ID as text
      subscription  Manage subscriptions of a server
      schedule      Manage schedules of a server
      workers       List the workers of a server
      token         Manage access tokens of a server
      grant         Restrict roles to paths, and credentials to playbooks
      audit         Inspect, export, and verify the audit of secrets
      doctor        Check the server, the access token, and this machine
      config        Show and check the settings
      context       Manage contexts, which are named servers
      completions   Print a completion script for a shell [alias: completion]
      help          Print this message or the help of the given subcommand(s)

    Options:
          --config <FILE>  Configuration file, instead of noetl.toml in the working directory and the
                           files of the user and of this machine [env: NOETL_CONFIG]
      -h, --help           Print help
      -V, --version        Print version

    Exit codes: 0 well, 1 the execution ended badly, 2 the playbook or the call is wrong,
    3 the surroundings are (database in use, port taken, disk full), 70 a defect, 130 interrupted.
    ");
}

#[test]
fn the_help_of_run_is_stable() {
    assert_snapshot!(help(&["run"]), @r"
    Run a playbook locally to completion

    Usage: noetl run [OPTIONS] <FILE>

    Arguments:
      <FILE>
              Playbook file; `-` reads stdin. With `--runtime distributed`, a catalog path

    Options:
          --set <KEY=VALUE>
              Workload value to set, such as `--set who=Ada` or `--set limits.max=3`. JSON if it parses,
              else text; a `workload.` prefix of the key is ignored. Overrides --payload. Repeatable

          --payload <JSON|FILE>
              JSON object to merge into the workload: inline, a file, or `-` for stdin. Overrides
              --input

              [alias: --workload]

      -i, --input <JSON|FILE>
              JSON object to merge into the workload, with lower precedence than --payload

          --credentials <FILE>
              File with credentials for the run, under the names that playbooks use in `auth`: YAML or
              JSON with a `{name, type, data}` object, or with a list of them. Repeatable

          --db <PATH>
              Database file for the event log [default: in memory]

          --database-url <URL>
              Database for the event log: `sqlite://path`, or
              `postgres://user:password@host:port/database` [default: in memory]

          --slots <N>
              Maximum number of steps to run at a time

              [default: 16]

          --approve
              Approve every approval of the playbook. Without this flag, prompt for each one on a
              terminal

          --dry-run
              Check the playbook and the payload, without running

          --output <OUTPUT>
              Output format of the outcome

              Possible values:
              - text: Plain text for people
              - json: JSON document for programs

              [default: text]

      -j, --json
              Print JSON, as --output json does

          --config <FILE>
              Configuration file, instead of noetl.toml in the working directory and the files of the
              user and of this machine [env: NOETL_CONFIG]

      -h, --help
              Print help (see a summary with '-h')

    Server:
      -r, --runtime <RUNTIME>
              Runtime for the playbook

              Possible values:
              - auto:        Currently the same as local
              - local:       In this process, to completion
              - distributed: On a server that has the playbook in its catalog, as `noetl execute` does

              [default: auto]

      -V, --version <N>
              Version to start [default: latest]

          --server-url <URL>
              Server URL [default: as for `noetl execute`]

              [alias: --endpoint]

          --context <NAME>
              Context that names the server

          --token <TOKEN>
              Access token for the server
    ");
}

#[test]
fn the_help_of_check_is_stable() {
    assert_snapshot!(help(&["check"]), @r"
    Check playbooks and report errors with location and fix

    Usage: noetl check [OPTIONS] <FILES>...

    Arguments:
      <FILES>...
              Playbooks to check; `-` reads one from stdin

    Options:
          --fix
              Rewrite older syntax to the current dialect where the rewrite is unambiguous. Keeps
              comments. A document from stdin is printed to stdout

          --dry-run
              Print the changes that --fix would make instead of writing them

          --against <PATH|ID>
              Execution ID, or a catalog path for its newest executions. Replays each execution with
              this playbook and shows the first decision that differs from the recorded one

          --last <N>
              Number of executions to replay, with --against and a path

              [default: 20]

          --data <DIR>
              Directory for the database of `noetl dev`, its encryption key, and its token [env:
              NOETL_DATA] [default: noetl-data]

          --database-url <URL>
              Database to use instead of the data directory: `sqlite://path`, or
              `postgres://user:password@host:port/database` [env: NOETL_DATABASE_URL]

          --output <OUTPUT>
              Output format of the diagnostics

              Possible values:
              - text: Plain text for people
              - json: JSON document for programs

              [default: text]

          --config <FILE>
              Configuration file, instead of noetl.toml in the working directory and the files of the
              user and of this machine [env: NOETL_CONFIG]

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
          --host <HOST>         Address to listen on. Without authentication of callers, only a loopback
                                address is accepted [env: NOETL_HOST] [default: 127.0.0.1]
          --port <PORT>         Port to listen on; 0 picks a free port [env: NOETL_PORT] [default: 8082]
          --auth <MODE>         Authentication of callers: `token` requires an access token, `oidc` also
                                accepts tokens of an identity provider, and `open` lets every user and
                                program of this machine do everything. `noetl dev` creates and stores
                                its token for you [env: NOETL_AUTH] [default: token in noetl dev, open
                                in noetl server]
          --data <DIR>          Directory for the database of `noetl dev`, its encryption key, and its
                                token [env: NOETL_DATA] [default: noetl-data]
          --database-url <URL>  Database to use instead of the data directory: `sqlite://path`, or
                                `postgres://user:password@host:port/database` [env: NOETL_DATABASE_URL]
          --slots <N>           Maximum number of steps that the process of `noetl dev` runs at a time;
                                0 if only separate workers run steps [env: NOETL_SLOTS] [default: 16]
          --nats-url <URL>      NATS server that announces commands, and on which servers publish
                                events, such as `nats://user:password@host:port`; separate the servers
                                of a cluster with commas. Publishing events requires
                                NOETL_EVENT_STREAM_ENABLED or NOETL_OUTBOX_RELAY [env: NOETL_NATS_URL]
          --config <FILE>       Configuration file, instead of noetl.toml in the working directory and
                                the files of the user and of this machine [env: NOETL_CONFIG]
      -h, --help                Print help

    What is removed once a day, if any of these is given:
          --event-retention-days <N>    Days to retain finished executions with all their data, since
                                        their last event; 0 is forever [env: NOETL_EVENT_RETENTION_DAYS]
                                        [default: 0]
          --command-retention-days <N>  Days to retain commands of finished executions, since the
                                        commands ended; 0 is forever [env: NOETL_COMMAND_RETENTION_DAYS]
                                        [default: 7]
          --runtime-stale-minutes <N>   Minutes to retain worker pools, since their last heartbeat; 0 is
                                        forever [env: NOETL_RUNTIME_STALE_MINUTES] [default: 60]
          --outbox-retention-days <N>   Days to retain published outbox rows; 0 is forever [env:
                                        NOETL_OUTBOX_RETENTION_DAYS] [default: 7]
          --dedup-retention-days <N>    Days to remember messages of subscriptions for deduplication; 0
                                        is forever [env: NOETL_DEDUP_RETENTION_DAYS] [default: 7]
          --audit-retention-days <N>    Days to retain audit records of secrets; 0 is forever [env:
                                        NOETL_AUDIT_RETENTION_DAYS] [default: 90]
    ");
}

#[test]
fn the_help_of_db_lists_its_verbs() {
    assert_snapshot!(help(&["db"]), @r"
    Inspect, back up, and purge the database

    Usage: noetl db [OPTIONS] <COMMAND>

    Commands:
      migrate   Create the database if it doesn't exist, and migrate its schema to the latest version
                [alias: init]
      validate  Check the database and every event log in it. Read-only
      stats     Show the number of rows and bytes of each table
      backup    Copy an embedded database to a new file. Safe while a server uses the database
      purge     Delete old data by retention policy. Never touches unfinished executions
      help      Print this message or the help of the given subcommand(s)

    Options:
          --config <FILE>  Configuration file, instead of noetl.toml in the working directory and the
                           files of the user and of this machine [env: NOETL_CONFIG]
      -h, --help           Print help
    ");
}

#[test]
fn the_help_of_execute_names_the_server() {
    assert_snapshot!(help(&["execute"]), @r"
    Start a registered playbook on a server

    Usage: noetl execute [OPTIONS] <PATH>

    Arguments:
      <PATH>
              Catalog path of the playbook

    Options:
      -V, --version <N>
              Version of the playbook [default: latest]

          --set <KEY=VALUE>
              Workload value to set, such as `--set who=Ada` or `--set limits.max=3`. JSON if it parses,
              else text; a `workload.` prefix of the key is ignored. Overrides --payload. Repeatable

          --payload <JSON|FILE>
              JSON object to merge into the workload: inline, a file, or `-` for stdin. Overrides
              --input

              [alias: --workload]

      -i, --input <JSON|FILE>
              JSON object to merge into the workload, with lower precedence than --payload

          --pool <NAME>
              Worker pool for the commands of the execution

      -f, --follow
              Print events until the execution ends, and exit with its outcome

          --config <FILE>
              Configuration file, instead of noetl.toml in the working directory and the files of the
              user and of this machine [env: NOETL_CONFIG]

      -h, --help
              Print help (see a summary with '-h')

    Server:
          --server-url <URL>
              Server URL, such as http://host:8082. A URL in a file wins over the current context [env:
              NOETL_SERVER_URL] [default: that of the current context, else http://127.0.0.1:8082]

          --token <TOKEN>
              Access token. A token in a file is sent only to a server that a file names [env:
              NOETL_TOKEN or NOETL_SESSION_TOKEN] [default: that of the context]

          --host <HOST>
              Host of the server, with --port

      -p, --port <PORT>
              Port of the server, with --host

          --context <NAME>
              Context that names the server; see `noetl context`

    Output:
          --output <OUTPUT>
              Output format [default: table]

              Possible values:
              - table: Human-readable text or table
              - json:  JSON, as returned by the server
              - yaml:  YAML form of the JSON response

      -j, --json
              Print JSON, as --output json does
    ");
}

#[test]
fn the_help_of_groups_lists_their_verbs() {
    assert_snapshot!(help(&["catalog"]), @r"
    Manage the documents of a server

    Usage: noetl catalog [OPTIONS] <COMMAND>

    Commands:
      register  Register documents of any kind; `-` reads stdin
      load      Register documents in batches, from files and from all YAML files below directories
      list      List documents, the newest version of each
      get       Print a document as registered
      validate  Validate documents without registering them
      help      Print this message or the help of the given subcommand(s)

    Options:
          --config <FILE>  Configuration file, instead of noetl.toml in the working directory and the
                           files of the user and of this machine [env: NOETL_CONFIG]
      -h, --help           Print help
    ");
    assert_snapshot!(help(&["token"]), @r"
    Manage access tokens of a server

    Usage: noetl token [OPTIONS] <COMMAND>

    Commands:
      create  Create a token and print it. It can't be printed later
      list    List all tokens, including revoked and expired ones
      revoke  Revoke a token immediately
      header  Print the authorization header for a server, for use with curl: `curl --header @<(noetl
              token header) URL`
      link    Print a link that signs in one browser, valid once within ten minutes
      help    Print this message or the help of the given subcommand(s)

    Options:
          --config <FILE>  Configuration file, instead of noetl.toml in the working directory and the
                           files of the user and of this machine [env: NOETL_CONFIG]
      -h, --help           Print help
    ");
    assert_snapshot!(help(&["audit"]), @r"
    Inspect, export, and verify the audit of secrets

    Usage: noetl audit [OPTIONS] <COMMAND>

    Commands:
      list    List requests for secrets, latest first
      export  Write audit records as JSON lines, oldest first, or send them to syslog
      verify  Verify in the database that no audit record was changed, removed, or moved, and that every
              encrypted value is in the row it was sealed for. Read-only
      help    Print this message or the help of the given subcommand(s)

    Options:
          --config <FILE>  Configuration file, instead of noetl.toml in the working directory and the
                           files of the user and of this machine [env: NOETL_CONFIG]
      -h, --help           Print help
    ");
    assert_snapshot!(help(&["context"]), @r"
    Manage contexts, which are named servers

    Usage: noetl context [OPTIONS] <COMMAND>

    Commands:
      add      Add a context for a server
      update   Change the settings of a context
      use      Make a context the current one
      list     List contexts and mark the current one
      current  Print the current context
      delete   Delete a context from this machine
      help     Print this message or the help of the given subcommand(s)

    Options:
          --config <FILE>  Configuration file, instead of noetl.toml in the working directory and the
                           files of the user and of this machine [env: NOETL_CONFIG]
      -h, --help           Print help
    ");
    assert_snapshot!(help(&["subscription"]), @r"
    Manage subscriptions of a server

    Usage: noetl subscription [OPTIONS] <COMMAND>

    Commands:
      register    Register a subscription whose document is in the catalog
      list        List all subscriptions, including deactivated ones
      get         Show the status of a subscription
      events      Print events of a subscription: state changes and outcomes of messages
      activate    Activate a subscription, so that it receives messages
      pause       Pause a subscription, so that it receives no messages
      resume      Resume a paused subscription
      drain       Finish the messages in flight and receive no more
      deactivate  End a subscription from any state
      help        Print this message or the help of the given subcommand(s)

    Options:
          --config <FILE>  Configuration file, instead of noetl.toml in the working directory and the
                           files of the user and of this machine [env: NOETL_CONFIG]
      -h, --help           Print help
    ");
    assert_snapshot!(help(&["schedule"]), @r"
    Manage schedules of a server

    Usage: noetl schedule [OPTIONS] <COMMAND>

    Commands:
      list    List schedules with their next runs
      get     Show the status of a schedule
      create  Create a schedule. Registering a document of kind Schedule creates one, too
      pause   Pause a schedule, so that it starts no executions
      resume  Resume a paused schedule
      run     Start an execution of a schedule now
      delete  Delete a schedule from the server
      help    Print this message or the help of the given subcommand(s)

    Options:
          --config <FILE>  Configuration file, instead of noetl.toml in the working directory and the
                           files of the user and of this machine [env: NOETL_CONFIG]
      -h, --help           Print help
    ");
    assert_snapshot!(help(&["credential"]), @r"
    Manage credentials on a server

    Usage: noetl credential [OPTIONS] <COMMAND>

    Commands:
      set     Store a credential, replacing any credential of that name
      list    List credentials without their secret data
      get     Print a credential; secret data only with --include-data
      delete  Delete a credential from the server
      reseal  Bind every encrypted value of a database to its tenant and name
      help    Print this message or the help of the given subcommand(s)

    Options:
          --config <FILE>  Configuration file, instead of noetl.toml in the working directory and the
                           files of the user and of this machine [env: NOETL_CONFIG]
      -h, --help           Print help
    ");
}

#[test]
fn completion_is_an_alias_of_completions() {
    let home = Home::new();
    let (one, other) = (home.noetl(["completions", "bash"]), home.noetl(["completion", "bash"]));
    assert_eq!((other.code, &other.stdout), (Some(0), &one.stdout));
}

#[test]
fn the_help_of_completions_is_stable() {
    assert_snapshot!(help(&["completions"]), @r"
    Print a completion script for a shell

    Usage: noetl completions [OPTIONS] <SHELL>

    Arguments:
      <SHELL>  Shell to complete commands for [possible values: bash, elvish, fish, powershell, zsh]

    Options:
          --config <FILE>  Configuration file, instead of noetl.toml in the working directory and the
                           files of the user and of this machine [env: NOETL_CONFIG]
      -h, --help           Print help
    ");
}

#[test]
fn the_help_of_worker_is_stable() {
    assert_snapshot!(help(&["worker"]), @r"
    Start a worker that runs steps for a server

    Usage: noetl worker [OPTIONS]

    Options:
          --slots <N>              Maximum number of steps to run at a time [env: NOETL_WORKER_SLOTS]
                                   [default: 16]
          --pool <POOL>            Pool whose steps to run [env: NOETL_WORKER_POOL] [default: shared]
          --label <KEY=VALUE>      Label to show in `noetl workers`. Repeatable; labels of all layers
                                   are joined [env: NOETL_WORKER_LABELS, comma-separated]
          --name <NAME>            Worker name, unique among all processes [env: NOETL_WORKER_NAME]
                                   [default: generated]
          --listen <ADDRESS:PORT>  Address to serve `GET /health` and `GET /metrics` on; port 0 picks a
                                   free port [env: NOETL_WORKER_LISTEN]
          --result-max <MIB>       Maximum size of a step's result, in MiB [env:
                                   NOETL_WORKER_RESULT_MAX_MB] [default: 64]
          --grace <SECONDS>        Seconds that running steps may take to finish on shutdown; unfinished
                                   commands are released [env: NOETL_WORKER_GRACE_SECS] [default: 30]
          --config <FILE>          Configuration file, instead of noetl.toml in the working directory
                                   and the files of the user and of this machine [env: NOETL_CONFIG]
      -h, --help                   Print help

    Server:
          --server <URL>       Server URL, such as http://host:8082. A URL in a file wins over the
                               current context [env: NOETL_SERVER_URL] [default: that of the current
                               context, else http://127.0.0.1:8082] [alias: --server-url]
          --token-file <FILE>  File with an access token of role worker; `-` reads stdin [env:
                               NOETL_TOKEN_FILE]
          --token <TOKEN>      Access token of role worker. Prefer a file: other processes may read the
                               arguments and the environment while the worker starts [env: NOETL_TOKEN
                               or NOETL_SESSION_TOKEN] [default: that of the context]
          --nats-url <URL>     NATS server that announces commands, and on which servers publish events,
                               such as `nats://user:password@host:port`; separate the servers of a
                               cluster with commas. Publishing events requires
                               NOETL_EVENT_STREAM_ENABLED or NOETL_OUTBOX_RELAY [env: NOETL_NATS_URL]
          --context <NAME>     Context that names the server; see `noetl context`

    Subscriptions:
          --subscriptions        Run every subscription that fetches messages from a source, in addition
                                 to steps. Workers with this flag share the subscriptions; one worker
                                 runs each at a time
          --subscription <PATH>  Catalog path of the subscription to run, without running steps.
                                 Registers and activates it. On exit, drains and deactivates it unless
                                 another worker waits to take over. [env: NOETL_SUBSCRIPTION_PATH, if
                                 WORKER_MODE is `subscription`]

    Isolation of steps:
          --step-isolation <LEVEL>      Isolation level of steps: 0 none, 1 Landlock and a subreaper, 2
                                        namespaces, 3 separate users, or auto for the highest level up
                                        to 2 that this machine supports (3 with --step-users) [env:
                                        NOETL_STEP_ISOLATION] [default: auto]
          --step-users <FIRST-LAST>     User IDs to run steps as, one per tenant, such as
                                        `200000-265535`. Requires root [env: NOETL_STEP_USERS]
          --step-paths <PATHS>          Directories that steps may use in addition to system
                                        directories, `=ro` for read-only: `/srv/data,/srv/shared=ro;
                                        TENANT: /srv/tenant` [env: NOETL_STEP_PATHS] [default: all]
          --step-tools <KINDS>          Tool kinds that steps may use: `shell,http; TENANT: http` [env:
                                        NOETL_STEP_TOOLS] [default: all]
          --step-share-tenants          Run steps of several tenants even if the level doesn't isolate
                                        tenants (below 2) [env: NOETL_STEP_SHARE_TENANTS=true]
          --step-user <USER>            User to run steps as: a name, or IDs such as `1000:1000`.
                                        Requires root [env: NOETL_STEP_USER] [default: the worker's
                                        user]
          --step-no-network             Run steps without network access [env:
                                        NOETL_STEP_NO_NETWORK=true]
          --step-private-tmp            Give each step its own in-memory temporary directory [env:
                                        NOETL_STEP_PRIVATE_TMP=true]
          --step-memory <MIB>           Address space limit of each step process, in MiB [env:
                                        NOETL_STEP_MEMORY_MB]
          --step-cpu-seconds <SECONDS>  CPU time limit of each step process, in seconds [env:
                                        NOETL_STEP_CPU_SECONDS]
          --step-processes <N>          Maximum number of processes of the user that runs the steps
                                        [env: NOETL_STEP_PROCESSES]
          --step-cgroup <DIRECTORY>     Control group (version 2) to run steps in; its limits apply to
                                        all steps together [env: NOETL_STEP_CGROUP]
          --step-env <NAMES>            Names of the worker's environment variables that steps inherit
                                        [env: NOETL_STEP_ENV, comma-separated] [default:
                                        PATH,HOME,LANG,TMPDIR]
    ");
}

#[test]
fn the_version_names_the_commit_it_was_built_from() {
    let output = Home::new().noetl(["--version"]);
    let version = output.stdout.trim().strip_prefix("noetl ").unwrap();
    let (number, commit) = version.split_once(' ').unwrap();
    assert_eq!(number, env!("CARGO_PKG_VERSION"));
    let commit = commit.trim_matches(['(', ')']);
    let is_hash = commit.len() == 12 && commit.chars().all(|c| c.is_ascii_hexdigit());
    assert!(is_hash || commit == "unknown", "{commit}");
}

#[test]
fn every_shell_gets_a_completion_script() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = Home::new().noetl(["completions", shell]);
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
        assert!(output.stdout.contains("completions"), "{shell}: {}", output.stdout);
    }
}

#[test]
fn an_unknown_verb_is_a_usage_error() {
    let output = Home::new().noetl(["chekc"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    assert!(output.stderr.contains("a similar subcommand exists: 'check'"), "{}", output.stderr);
}

#[test]
fn the_help_of_the_published_verbs_is_stable() {
    assert_snapshot!(help(&["catalog", "load"]), @r"
    Register documents in batches, from files and from all YAML files below directories

    Usage: noetl catalog load [OPTIONS] <PATHS>...

    Arguments:
      <PATHS>...
              Files, and directories to search recursively

    Options:
          --batch-size <N>
              Maximum number of documents per request, up to 1,000

              [default: 100]

          --dry-run
              List the documents that would be sent, without sending them

          --force
              Register documents even if they have errors

          --config <FILE>
              Configuration file, instead of noetl.toml in the working directory and the files of the
              user and of this machine [env: NOETL_CONFIG]

      -h, --help
              Print help (see a summary with '-h')

    Server:
          --server-url <URL>
              Server URL, such as http://host:8082. A URL in a file wins over the current context [env:
              NOETL_SERVER_URL] [default: that of the current context, else http://127.0.0.1:8082]

          --token <TOKEN>
              Access token. A token in a file is sent only to a server that a file names [env:
              NOETL_TOKEN or NOETL_SESSION_TOKEN] [default: that of the context]

          --host <HOST>
              Host of the server, with --port

      -p, --port <PORT>
              Port of the server, with --host

          --context <NAME>
              Context that names the server; see `noetl context`

    Output:
          --output <OUTPUT>
              Output format [default: table]

              Possible values:
              - table: Human-readable text or table
              - json:  JSON, as returned by the server
              - yaml:  YAML form of the JSON response

      -j, --json
              Print JSON, as --output json does
    ");
    assert_snapshot!(help(&["query"]), @r"
    Run SQL on the Postgres database of a server

    Usage: noetl query [OPTIONS] <SQL>

    Arguments:
      <SQL>
              SQL statement to run

    Options:
      -s, --schema <NAME>
              Schema in which to resolve unqualified names

              [default: noetl]

      -f, --format <FORMAT>
              Output format, as for --output

              Possible values:
              - table: Human-readable text or table
              - json:  JSON, as returned by the server
              - yaml:  YAML form of the JSON response

          --config <FILE>
              Configuration file, instead of noetl.toml in the working directory and the files of the
              user and of this machine [env: NOETL_CONFIG]

      -h, --help
              Print help (see a summary with '-h')

    Server:
          --server-url <URL>
              Server URL, such as http://host:8082. A URL in a file wins over the current context [env:
              NOETL_SERVER_URL] [default: that of the current context, else http://127.0.0.1:8082]

          --token <TOKEN>
              Access token. A token in a file is sent only to a server that a file names [env:
              NOETL_TOKEN or NOETL_SESSION_TOKEN] [default: that of the context]

          --host <HOST>
              Host of the server, with --port

      -p, --port <PORT>
              Port of the server, with --host

          --context <NAME>
              Context that names the server; see `noetl context`

    Output:
          --output <OUTPUT>
              Output format [default: table]

              Possible values:
              - table: Human-readable text or table
              - json:  JSON, as returned by the server
              - yaml:  YAML form of the JSON response

      -j, --json
              Print JSON, as --output json does
    ");
    assert_snapshot!(help(&["ehdb", "query"]), @r"
    Query executions and events

    Usage: noetl ehdb query [OPTIONS] <COMMAND>

    Commands:
      executions  List executions, newest first
      execution   Show the status of an execution
      events      List events of an execution, oldest first
      help        Print this message or the help of the given subcommand(s)

    Options:
          --config <FILE>  Configuration file, instead of noetl.toml in the working directory and the
                           files of the user and of this machine [env: NOETL_CONFIG]
      -h, --help           Print help
    ");
}
