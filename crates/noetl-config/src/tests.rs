//! Tests of the layers, driven by the declarations.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;

use crate::tree::{self, Options};
use crate::*;

/// Names that existed before there was a file. They never change.
const VARIABLES: &str = include_str!("../variables.txt");

/// Returns a value of a setting's type as text and as TOML, different from its default.
fn sample(setting: &Setting) -> (String, String) {
    let number = |min: i64, max: i64| {
        let number = if setting.default == Some(&min.to_string()) { min + 1 } else { min };
        (number.min(max).to_string(), number.min(max).to_string())
    };
    let quoted = |text: &str| (text.to_owned(), format!("'{text}'"));
    match setting.kind {
        Kind::Text => quoted("some text"),
        Kind::Number { min, max } | Kind::Seconds { min, max } | Kind::Millis { min, max } => {
            number(min, max)
        }
        Kind::Switch | Kind::OtelSwitch => ("true".to_owned(), "true".to_owned()),
        Kind::Choice(words) => {
            let other = words.iter().find(|word| setting.default != Some(word));
            quoted(other.unwrap())
        }
        Kind::List => ("a,b".to_owned(), "['a', 'b']".to_owned()),
        Kind::Path => quoted("/some/path"),
        Kind::Ip => quoted("::1"),
        Kind::Socket => quoted("[::1]:9"),
    }
}

/// Returns a value that is never of the setting's type, if the type has one.
fn wrong(setting: &Setting) -> Option<&'static str> {
    match setting.kind {
        Kind::Text | Kind::List | Kind::Path | Kind::OtelSwitch => None,
        _ => Some("hunter2"),
    }
}

fn environment(variables: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn of_variables(variables: &[(&str, &str)]) -> Settings {
    Settings::new(Vec::new(), environment(variables))
}

fn file(text: &str) -> FileLayer {
    FileLayer::parse(Path::new("noetl.toml"), text.as_bytes(), true).unwrap()
}

fn line(setting: &Setting, value: &str) -> String {
    let (section, name) = setting.key.split_once('.').unwrap();
    format!("[{section}]\n{name} = {value}\n")
}

fn problems(text: &str) -> Vec<String> {
    let parsed = FileLayer::parse(Path::new("noetl.toml"), text.as_bytes(), true);
    let shown = |problem: Problem| match problem.hint {
        Some(ref hint) => format!("{problem}; {hint}"),
        None => problem.to_string(),
    };
    parsed.err().unwrap_or_default().into_iter().map(shown).collect()
}

/// A setting with what it depends on.
fn found(settings: &Settings, setting: &'static Setting) -> Option<ResolvedValue> {
    settings.find(setting).unwrap()
}

/// The host, so that settings of it are read.
const HOST: (&str, &str) = ("POSTGRES_HOST", "db");

/// The exporter of traces, so that settings of it are read.
const EXPORTER: (&str, &str) = ("OTEL_TRACES_EXPORTER", "otlp");

#[test]
fn every_variable_of_the_list_belongs_to_one_setting() {
    let mut known: Vec<&str> =
        Options::settings().flat_map(|it| it.variables.iter().copied()).collect();
    known.sort_unstable();
    let listed: Vec<&str> = VARIABLES.lines().collect();
    assert_eq!(known, listed);
}

#[test]
fn keys_are_unique_and_described() {
    let mut keys: Vec<&str> = Options::settings().map(|setting| setting.key).collect();
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), count);
    for setting in Options::settings() {
        assert!(setting.about.trim().ends_with('.'), "{}", setting.key);
        assert!(!setting.is_secret() || setting.is_guarded, "{}", setting.key);
    }
}

#[test]
fn every_variable_sets_its_setting() {
    for setting in Options::settings() {
        for variable in setting.variables {
            let (text, _) = sample(setting);
            let settings = of_variables(&[HOST, (variable, &text)]);
            let found = found(&settings, setting).unwrap();
            assert_eq!(found.origin, Origin::Variable(variable));
            let parsed = setting.kind.parse(&RawValue::from(text.as_str())).unwrap();
            assert_eq!(Some(found.value), parsed, "{variable}");
        }
    }
}

#[test]
fn every_variable_of_the_wrong_type_is_named_without_secrets() {
    for setting in Options::settings() {
        for variable in setting.variables {
            let Some(wrong) = wrong(setting) else { continue };
            let settings = of_variables(&[HOST, EXPORTER, (variable, wrong)]);
            let problem = settings.find(setting).unwrap_err().to_string();
            let expected = format!("{variable} is {}", setting.kind.expected());
            assert!(problem.starts_with(&expected), "{problem}");
            assert_eq!(problem.contains("hunter2"), !setting.is_secret(), "{problem}");
        }
    }
}

#[test]
fn an_empty_variable_counts_as_unset_for_every_setting() {
    for setting in Options::settings() {
        for variable in setting.variables {
            let settings = of_variables(&[HOST, (variable, "")]);
            let found = found(&settings, setting);
            let is_host = setting.key == "database.host";
            assert!(
                found.is_none_or(|found| found.origin == Origin::Default || is_host),
                "{variable}"
            );
        }
    }
}

#[test]
fn variables_that_are_not_utf_8_are_named_unless_they_are_paths() {
    let bytes = OsStr::from_bytes(b"/a\xff");
    for setting in Options::settings() {
        for variable in setting.variables {
            let mut variables = environment(&[HOST, EXPORTER]);
            variables.retain(|(name, _)| name != variable);
            variables.push((variable.into(), bytes.to_owned()));
            let settings = Settings::new(Vec::new(), variables);
            match (setting.kind, settings.find(setting)) {
                (Kind::Path, found) => {
                    assert_eq!(found.unwrap().unwrap().value, ParsedValue::Path(bytes.to_owned()));
                }
                (_, found) if setting.is_joined => assert!(found.is_ok()),
                (_, found) => {
                    let problem = found.unwrap_err().to_string();
                    assert_eq!(problem, format!("{variable} is not valid UTF-8"));
                }
            }
        }
    }
}

#[test]
fn every_layer_wins_over_the_ones_below_it() {
    for setting in Options::settings() {
        let default = found(&of_variables(&[HOST]), setting);
        let default = default.filter(|_| setting.key != "database.host");
        assert_eq!(
            default.as_ref().map(|found| &found.origin),
            setting.default.map(|_| &Origin::Default),
            "{}",
            setting.key
        );
        let (text, toml) = sample(setting);
        let content = line(setting, &toml);
        let files = vec![file(&content), file(&content)];
        let settings = Settings::new(files, environment(&[]));
        let of_file = found(&settings, setting).unwrap();
        let parsed = setting.kind.parse(&RawValue::from(text.as_str())).unwrap();
        if setting.is_joined {
            assert_eq!(
                of_file.value,
                ParsedValue::List(["a", "b", "a", "b"].map(String::from).into())
            );
        } else {
            assert_eq!(Some(&of_file.value), parsed.as_ref(), "{}", setting.key);
        }
        assert_eq!(of_file.origin.layer(), "file", "{}", setting.key);
        for variable in setting.variables.iter().rev() {
            let settings = Settings::new(vec![file(&content)], environment(&[(*variable, &text)]));
            let origin = found(&settings, setting).unwrap().origin;
            assert_eq!(origin, Origin::Variable(variable));
            let flag = [(setting.key, "flag", RawValue::from(text.as_str()))];
            let origin = found(&settings.with_flags(flag), setting).unwrap().origin;
            assert_eq!(origin, Origin::Flag("flag"), "{}", setting.key);
        }
        let all: Vec<(&str, &str)> =
            setting.variables.iter().map(|name| (*name, text.as_str())).collect();
        let origin = found(&of_variables(&[&all[..], &[HOST]].concat()), setting).unwrap().origin;
        assert_eq!(Some(origin), setting.variables.first().map(|name| Origin::Variable(name)));
    }
}

#[test]
fn every_section_decodes_its_defaults_and_its_samples() {
    Settings::default().options().unwrap();
    let mut content = String::new();
    for section in Options::sections() {
        content.push_str(&format!("[{}]\n", section.name));
        for setting in section.settings {
            content.push_str(&format!("{} = {}\n", setting.name(), sample(setting).1));
        }
    }
    let settings = Settings::new(vec![file(&content)], environment(&[]));
    let options = settings.options().unwrap();
    assert_eq!(options.worker.labels.as_deref(), Some(&["a".to_owned(), "b".to_owned()][..]));
    assert_eq!(options.limits.request_timeout_secs, Duration::from_secs(1));
    let shown = format!("{options:?}");
    assert!(shown.contains("some text") && shown.contains(MASK), "{shown}");
}

#[test]
fn no_secret_is_shown() {
    for setting in Options::settings().filter(|setting| setting.is_secret()) {
        for (given, _) in [("postgres://ada:hunter2@db/x", 0), ("hunter2", 1)] {
            let settings = of_variables(&[(setting.variables[0], given)]);
            let effective = settings.effective().unwrap();
            let shown = effective.iter().find(|it| it.setting.key == setting.key).unwrap();
            let shown = shown.shown.as_deref().unwrap();
            assert!(shown.contains(MASK) && !shown.contains("hunter2"), "{shown}");
        }
    }
}

#[test]
fn every_value_of_the_wrong_toml_type_is_named_with_its_position() {
    for setting in Options::settings() {
        for (toml, found) in [
            ("1.5", "a floating-point number"),
            ("{a = 1}", "a table"),
            ("[1]", "an array"),
            ("2026-01-02", "a date or time"),
        ] {
            let said = problems(&line(setting, toml));
            let expected = setting.kind.expected();
            let column = setting.name().len() + 4;
            let sentence =
                format!("noetl.toml:2:{column}: {} is {expected}, not {found}", setting.key);
            assert_eq!(said, [sentence]);
        }
    }
    assert_eq!(
        problems("[server]\nport = '8082'\nslots = 10001\n[database]\nurl = 5\n"),
        [
            "noetl.toml:2:8: server.port is a number from 0 to 65535, not the string '8082'",
            "noetl.toml:3:9: server.slots is a number from 0 to 10000, not the integer 10001",
            "noetl.toml:5:7: database.url is text, not an integer",
        ]
    );
}

#[test]
fn unknown_keys_are_refused_with_position_and_suggestion() {
    for (text, expected) in [
        ("[server]\nprot = 1", "2:1: unknown key 'prot' in [server]; did you mean port?"),
        ("[sever]\nport = 1", "1:2: unknown section 'sever'; did you mean server?"),
        ("port = 1", "1:1: unknown key 'port'; did you mean server.port?"),
        ("NOETL_PORT = 1", "1:1: unknown key 'NOETL_PORT'; did you mean server.port?"),
        ("[server]\npool = 'x'", "2:1: unknown key 'pool' in [server]; did you mean worker.pool?"),
        ("[server]\n'étoile' = 1", "2:1: unknown key 'étoile' in [server]"),
        ("server.x.y = 1", "1:8: unknown key 'x' in [server]"),
        (
            "server = 1",
            "1:10: server is a table, not an integer; write [server] and its settings below",
        ),
        (
            "[[server]]",
            "1:3: server is a table, not an array; write [server] and its settings below",
        ),
    ] {
        let said = problems(text);
        assert_eq!(said.len(), 1, "{said:?}");
        let said = said[0].strip_prefix("noetl.toml:").unwrap();
        let (position, rest) = said.split_once(": ").unwrap();
        let (known, message) = expected.split_once(": ").unwrap();
        assert_eq!(rest, message);
        if !text.starts_with("[[") {
            assert_eq!(position, known, "{text}");
        }
    }
}

#[test]
fn all_problems_of_a_file_are_found_in_order() {
    let said = problems("[server]\nport = 'x'\nprot = 1\n[worker]\nslots = 0\n[what]\n");
    let lines: Vec<&str> = said.iter().map(|line| line.split(':').nth(1).unwrap()).collect();
    assert_eq!(lines, ["2", "3", "5", "6"]);
    let said = problems("[server]\nport = \nhost = 'a\n");
    assert!(said.len() >= 2 && said[0].starts_with("noetl.toml:2:"), "{said:?}");
    let said = problems("[secrets]\nencryption_key = 'hunter2\n");
    assert!(!said.is_empty() && !said.join("").contains("hunter2"), "{said:?}");
    let said = problems("[server]\nport = 1\nport = 2\n");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("noetl.toml:3:"), "{said:?}");
}

#[test]
fn a_file_with_very_many_problems_is_reported_in_part() {
    let keys: String = (0..100_000).map(|number| format!("k{number:x}=1\n")).collect();
    let of_section = format!("[server]\n{keys}");
    let on_one_line = format!("server = {{{}}}", keys.trim().replace('\n', ","));
    let sections: String = (0..100_000).map(|number| format!("[s{number:x}]\n")).collect();
    let invalid = "= \n".repeat(100_000);
    let repeated = "server.port = 1\n".repeat(50_000);
    for text in [keys, of_section, on_one_line, sections, invalid, repeated] {
        let said = problems(&text);
        assert_eq!(said.len(), 101, "{said:?}");
        assert!(said[100].ends_with("more problems are not listed"), "{}", said[100]);
    }
    let many: String = ('a'..='z').map(|last| format!("port{last} = 1\n")).collect();
    let said = problems(&format!("[server]\n{many}"));
    let suggestions = said.iter().filter(|line| line.contains("did you mean port?")).count();
    assert_eq!((said.len(), suggestions), (26, 20));
}

#[test]
fn a_file_of_the_working_directory_must_not_set_guarded_keys() {
    for setting in Options::settings() {
        let text = line(setting, &sample(setting).1);
        let parsed = FileLayer::parse(Path::new("noetl.toml"), text.as_bytes(), false);
        match setting.is_guarded {
            false => assert!(parsed.is_ok(), "{}", setting.key),
            true => {
                let problem = parsed.unwrap_err().remove(0).to_string();
                let key = setting.key;
                let expected = format!(
                    "noetl.toml:2:1: {key} has no effect in a file of the working directory"
                );
                assert_eq!(problem, expected);
            }
        }
    }
}

#[test]
fn settings_that_protect_a_machine_are_guarded() {
    let of_limits = tree::Options::settings().filter(|it| it.key.starts_with("limits."));
    let others = [
        "database.data",
        "server.machine_id",
        "worker.result_max_mb",
        "executions.loop_items_max",
        "executions.playbook_depth_max",
        "executions.events_max",
    ];
    let others = others.into_iter().map(|key| Options::setting(key).unwrap());
    for setting in of_limits.chain(others) {
        assert!(setting.is_guarded, "{}", setting.key);
    }
}

#[test]
fn a_database_in_the_environment_replaces_another_kind_in_a_file() {
    let text = "[database]\nurl = 'postgres://f/x'\nshards = 'sqlite://a.db'\n";
    let settings = Settings::new(vec![file(text)], environment(&[HOST]));
    let database: tree::Database = settings.section().unwrap();
    assert!(database.url.is_none() && database.shards.is_none());
    assert_eq!(database.host.as_deref(), Some("db"));
    let settings = Settings::new(vec![file(text)], environment(&[("NOETL_DATABASE_URL", "u")]));
    let database: tree::Database = settings.section().unwrap();
    assert_eq!(database.url.unwrap().expose(), "u");
    assert!(database.shards.is_none());
    let settings = Settings::new(vec![file(text), file("[database]\nhost = 'h'\n")], []);
    let database: tree::Database = settings.section().unwrap();
    assert!(database.url.is_none() && database.host.is_some());
}

#[test]
fn a_data_directory_of_a_flag_or_variable_replaces_every_kind_of_database_in_a_file() {
    for text in [
        "url = 'postgres://f/x'",
        "url = 'sqlite://a.db'",
        "host = 'f'\nport = 1\nuser = 'u'\npassword = 'p'\nname = 'n'",
        "shards = 'sqlite://a.db'\ncluster = 'sqlite://b.db'",
    ] {
        let text = format!("[database]\ndata = 'in-file'\n{text}\n");
        let in_file = Settings::new(vec![file(&text)], []);
        let variable = Settings::new(vec![file(&text)], environment(&[("NOETL_DATA", "b")]));
        let flag = in_file.with_flags([("database.data", "data", "b".into())]);
        for settings in [variable, flag] {
            let database: tree::Database = settings.section().unwrap();
            assert_eq!(database.data, Path::new("b"));
            assert!(database.url.is_none() && database.host.is_none(), "{text}");
            assert!(database.shards.is_none() && database.cluster.is_none(), "{text}");
            assert!(database.password.is_none() && database.port == 5432, "{text}");
        }
        // The directory beside a database contains its key.
        let database: tree::Database = in_file.section().unwrap();
        let kinds = [database.url.is_some(), database.host.is_some(), database.shards.is_some()];
        assert_eq!(kinds.iter().filter(|it| **it).count(), 1, "{text}");
        assert_eq!(database.data, Path::new("in-file"));
        let url = environment(&[("NOETL_DATABASE_URL", "u")]);
        let database: tree::Database = Settings::new(vec![file(&text)], url).section().unwrap();
        assert_eq!(database.data, Path::new("in-file"));
    }
}

#[test]
fn a_target_is_not_mixed_with_settings_of_another_one() {
    let decode = |text: &str, variables: &[(&str, &str)]| {
        Settings::new(vec![file(text)], environment(variables)).options().unwrap()
    };
    let production = "[database]\nurl = 'postgres://p/x'\ndirect_url = 'postgres://d/x'\n";
    assert!(decode(production, &[]).database.direct_url.is_some());
    for variable in [
        ("NOETL_DATABASE_URL", "postgres://staging/x"),
        ("POSTGRES_HOST", "staging"),
        ("NOETL_SHARDS", "sqlite://a.db"),
        ("NOETL_DATA", "staging"),
    ] {
        assert!(decode(production, &[variable]).database.direct_url.is_none(), "{variable:?}");
    }
    let both = Settings::new(vec![file(production), file("[database]\nurl = 'u'\n")], []);
    assert!(both.section::<tree::Database>().unwrap().direct_url.is_none());
    // A direct URL has no flag, so its variable stays beside `--database-url`.
    let direct = of_variables(&[("NOETL_DATABASE_DIRECT_URL", "postgres://d/x")]);
    let direct = direct.with_flags([("database.url", "database-url", "u".into())]);
    assert!(direct.section::<tree::Database>().unwrap().direct_url.is_some());

    let shards = "[database]\nshards = 'sqlite://a.db'\ncluster = 'sqlite://c.db'\n";
    assert!(decode(shards, &[]).database.cluster.is_some());
    assert!(decode(shards, &[("NOETL_SHARDS", "sqlite://b.db")]).database.cluster.is_none());

    let collector = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://staging");
    let traces = decode("[traces]\ntraces_endpoint = 'http://p/v1/traces'\n", &[collector]).traces;
    assert_eq!(
        (traces.endpoint.as_deref(), traces.traces_endpoint),
        (Some("http://staging"), None)
    );
    let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://staging/v1/traces");
    let traces = decode("[traces]\nendpoint = 'http://p'\n", &[own]).traces;
    assert!(traces.endpoint.is_none() && traces.traces_endpoint.is_some());
}

#[test]
fn the_token_file_of_a_worker_does_not_hide_the_token_of_other_verbs() {
    let token = file("[client]\ntoken = 't'\n");
    let settings = Settings::new(vec![token], environment(&[("NOETL_TOKEN_FILE", "f")]));
    let client: tree::Client = settings.section().unwrap();
    assert_eq!(client.token.unwrap().expose(), "t");
    let worker: tree::Worker = settings.section().unwrap();
    assert_eq!(worker.token_file.as_deref(), Some(Path::new("f")));
    let token_file = file("[worker]\ntoken_file = 'f'\n");
    let settings = Settings::new(vec![token_file], environment(&[("NOETL_TOKEN", "t")]));
    assert!(settings.section::<tree::Worker>().unwrap().token_file.is_none());
}

#[test]
fn secret_files_of_all_layers_are_known_even_if_replaced() {
    let lower = file(
        "[worker]\ntoken_file = '/a'\n[server]\ninternal_api_token_file = '/b'\ntls_key = ''\n",
    );
    let higher = file("[worker]\ntoken_file = '/c'\n");
    let variables =
        [("NOETL_TOKEN", "t"), ("NOETL_INTERNAL_API_TOKEN", "t"), ("NOETL_TLS_KEY", "/d")];
    let settings = Settings::new(vec![lower, higher], environment(&variables));
    let settings = settings.with_flags([("client.tls_client_key", "flag", "/e".into())]);
    assert!(settings.section::<tree::Worker>().unwrap().token_file.is_none());
    let mut files = settings.secret_files();
    files.sort();
    assert_eq!(files, ["/a", "/b", "/c", "/d", "/e"].map(PathBuf::from));
}

#[test]
fn an_empty_string_in_a_file_replaces_nothing() {
    let lower = file("[steps]\nuser = 'ada'\n[database]\nhost = 'h'\n");
    let higher = file("[steps]\nusers = ''\n[database]\nurl = ''\nshards = ''\n");
    let options = Settings::new(vec![lower, higher], []).options().unwrap();
    assert_eq!(options.steps.user.as_deref(), Some("ada"));
    assert_eq!(options.database.host.as_deref(), Some("h"));
}

#[test]
fn the_port_of_another_postgres_service_is_not_read() {
    let port = ("POSTGRES_PORT", "tcp://10.0.0.1:5432");
    let database: tree::Database = of_variables(&[port]).section().unwrap();
    assert_eq!(database.port, 5432);
    assert!(of_variables(&[port, HOST]).section::<tree::Database>().is_err());
    let url = ("NOETL_DATABASE_URL", "sqlite://a.db");
    assert!(of_variables(&[port, HOST, url]).section::<tree::Database>().is_ok());
}

#[test]
fn wrong_values_of_features_that_are_not_used_count_as_unset() {
    let url = |url| ("NOETL_DATABASE_URL", url);
    let shards = |shards| ("NOETL_SHARDS", shards);
    for wrong in [
        ("POSTGRES_MAX_CONNECTIONS", "2"),
        ("POSTGRES_ACQUIRE_TIMEOUT", "10s"),
        ("NOETL_PG_STATEMENT_CACHE_CAPACITY", "-1"),
    ] {
        for without in [&[][..], &[url("sqlite://a.db")], &[shards("sqlite://a, sqlite://b")]] {
            let settings = of_variables(&[&[wrong][..], without].concat());
            let database: tree::Database = settings.section().unwrap();
            assert_eq!(database.max_connections, 10);
        }
        let cluster = [shards("sqlite://a"), ("NOETL_CLUSTER_DSN", "host=c;user=u")];
        for with in [&[HOST][..], &[url("postgres://h/d")], &[shards("host=h;user=u")], &cluster] {
            let settings = of_variables(&[&[wrong][..], with].concat());
            assert!(settings.section::<tree::Database>().is_err(), "{wrong:?} {with:?}");
        }
    }
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c");
    for wrong in [("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"), ("OTEL_BSP_MAX_QUEUE_SIZE", "0")] {
        for without in [
            &[][..],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
            &[("OTEL_TRACES_EXPORTER", "none"), endpoint],
            &[("OTEL_SDK_DISABLED", "true"), endpoint],
        ] {
            let settings = of_variables(&[&[wrong][..], without].concat());
            assert_eq!(settings.section::<tree::Traces>().unwrap().queue, 2048);
        }
        for with in [&[EXPORTER][..], &[endpoint]] {
            let settings = of_variables(&[&[wrong][..], with].concat());
            assert!(settings.section::<tree::Traces>().is_err(), "{wrong:?} {with:?}");
        }
    }
    // A value of the right type is read, because a flag may name a Postgres database later.
    let database: tree::Database =
        of_variables(&[("POSTGRES_MAX_CONNECTIONS", "50")]).section().unwrap();
    assert_eq!(database.max_connections, 50);
}

#[test]
fn labels_of_all_layers_are_joined() {
    let layer = file("[worker]\nlabels = ['a=1,2']\n");
    let settings = Settings::new(vec![layer], environment(&[("NOETL_WORKER_LABELS", "b=2, c=3")]));
    let settings =
        settings.with_flags([("worker.labels", "label", RawValue::List(vec!["d=4,5".to_owned()]))]);
    let worker: tree::Worker = settings.section().unwrap();
    assert_eq!(worker.labels.unwrap(), ["a=1,2", "b=2", "c=3", "d=4,5"]);
    let origins = settings.items_of("worker.labels");
    assert_eq!(origins[3].1, Origin::Flag("label"));
}

#[test]
fn names_of_values_are_those_under_which_they_were_set() {
    let settings = Settings::new(vec![file("[server]\nport = 1\n")], []);
    assert_eq!(settings.name_of("NOETL_PORT"), "noetl.toml:2:8: server.port");
    assert_eq!(settings.name_of("NOETL_HOST"), "NOETL_HOST");
    let settings = of_variables(&[("NOETL_SESSION_TOKEN", "t")]);
    assert_eq!(settings.name_of("NOETL_TOKEN"), "NOETL_SESSION_TOKEN");
}

#[test]
fn unknown_variables_are_named_with_a_suggestion() {
    let names = [
        "NOETL_PROT",
        "NOETL_PORT",
        "NOETL_STEP",
        "NOETL_TEST_SEED",
        "NOETL_FOR_TEMPLATES",
        "NOETL_SERVER_SERVICE_HOST",
        "NOETL_SERVER_SERVICE_PORT_HTTP",
        "NOETL_SERVER_PORT_8082_TCP_ADDR",
        "NOETL_ENTIRELY_DIFFERENT",
        "OTHER_PROT",
    ];
    let said = unknown_variables(names.map(OsStr::new), &["NOETL_FOR_TEMPLATES".to_owned()]);
    assert_eq!(
        said,
        [
            "unknown variable NOETL_ENTIRELY_DIFFERENT",
            "unknown variable NOETL_PROT; did you mean NOETL_PORT?",
        ]
    );
}

struct Home {
    directory: TempDir,
    uid: u32,
}

impl Home {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let uid = fs::metadata(directory.path()).unwrap().uid();
        Self { directory, uid }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn usual(&self) -> Files {
        let lookup = Lookup::Usual {
            system: self.path("system.toml"),
            user: Some(self.path("user.toml")),
            working: self.path("working.toml"),
        };
        lookup.read(self.uid)
    }

    fn named(&self, path: PathBuf) -> Vec<String> {
        let files = Lookup::Named(path).read(self.uid);
        let home = self.directory.path().to_str().unwrap();
        let problems = files.problems.iter();
        problems.map(|problem| problem.to_string().replace(home, "~")).collect()
    }
}

#[test]
fn the_usual_files_are_layers_and_none_hides_another() {
    let home = Home::new();
    assert!(home.usual().layers.is_empty() && home.usual().problems.is_empty());
    home.write("system.toml", "[auth]\nmode = 'oidc'\n[server]\nport = 1\n[worker]\nslots = 1\n");
    home.write("user.toml", "[server]\nport = 2\n[worker]\nslots = 2\n");
    home.write("working.toml", "[worker]\nslots = 3\n");
    let files = home.usual();
    assert!(files.problems.is_empty() && files.warnings.is_empty(), "{files:?}");
    let options = Settings::new(files.layers, []).options().unwrap();
    assert_eq!(options.auth.mode.as_deref(), Some("oidc"));
    assert_eq!((options.server.port, options.worker.slots), (2, 3));
}

#[test]
fn a_file_that_others_may_have_written_is_refused() {
    let home = Home::new();
    let path = home.write("working.toml", "");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o602)).unwrap();
    let said = home.usual().problems.remove(0).to_string();
    assert!(said.ends_with("working.toml: every user can write to the file"), "{said}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(home.usual().problems.is_empty());
    if home.uid == 0 {
        std::os::unix::fs::chown(&path, Some(4321), None).unwrap();
        let said = home.usual().problems.remove(0).to_string();
        assert!(said.ends_with("working.toml: the file belongs to another user"), "{said}");
        assert!(home.named(path).is_empty(), "a named file is trusted");
    }
}

#[test]
fn the_working_directory_of_a_trusted_file_is_trusted() {
    let home = Home::new();
    let user = home.write("user.toml", "[auth]\nmode = 'token'\n");
    std::os::unix::fs::symlink(user, home.path("working.toml")).unwrap();
    let files = home.usual();
    assert!(files.problems.is_empty(), "{files:?}");
    assert_eq!(files.layers.len(), 1);
}

#[test]
fn secrets_that_every_user_can_read_are_a_warning() {
    let home = Home::new();
    let path = home.write("user.toml", "[secrets]\nencryption_key = 'k'\n");
    assert!(home.usual().warnings.is_empty());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let warnings = home.usual().warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("chmod o-r"), "{warnings:?}");
    fs::write(&path, "[server]\nport = 1\n").unwrap();
    assert!(home.usual().warnings.is_empty());
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let home = Home::new();
    assert!(home.named(home.write("empty.toml", "")).is_empty());
    assert!(home.named(PathBuf::from("/dev/null")).is_empty());
    assert_eq!(home.named(home.path("")), ["~/: this is a directory"]);
    let absent = home.named(home.path("absent.toml"));
    assert!(absent[0].starts_with("~/absent.toml: could not read the file: "), "{absent:?}");
    let huge = home.write("huge.toml", vec![b'#'; (1 << 20) + 1]);
    let huge = home.named(huge);
    assert!(huge[0].ends_with("the file is larger than 1 MiB"), "{huge:?}");
    let large = home.write("large.toml", vec![b'\n'; 1 << 20]);
    assert!(home.named(large).is_empty());
    let bytes = home.write("bytes.toml", b"[server]\nport = 1 # \xff\n");
    assert_eq!(home.named(bytes), ["~/bytes.toml:2:12: the file is not valid UTF-8"]);
    let deep = home.write("deep.toml", format!("a = {}", "[".repeat(100_000)));
    assert!(!home.named(deep).is_empty());
    // Root reads every file.
    if home.uid != 0 {
        let path = home.write("user.toml", "");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        let files = home.usual();
        assert!(files.problems.is_empty() && files.unreadable.len() == 1, "{files:?}");
    }
    fs::create_dir(home.path("working.toml")).unwrap();
    let said = home.usual().problems.remove(0).to_string();
    assert!(said.ends_with("working.toml: this is not a file"), "{said}");
}

#[test]
fn a_named_file_that_can_be_read_only_once_is_refused() {
    use std::os::fd::AsRawFd as _;
    let home = Home::new();
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"[server]\nport = 1\n").unwrap();
    let pipe = PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()));
    let said = home.named(pipe.clone());
    assert_eq!(said, [format!("{}: this is not a regular file", pipe.display())]);
    // Nothing was read from it.
    drop(writer);
    assert_eq!(std::io::read_to_string(reader).unwrap(), "[server]\nport = 1\n");
    let said = home.named(PathBuf::from("/dev/zero"));
    assert_eq!(said, ["/dev/zero: this is not a regular file"]);
    let path = home.write("file.toml", "[server]\nport = 1\n");
    let file = fs::File::open(path).unwrap();
    assert!(home.named(PathBuf::from(format!("/dev/fd/{}", file.as_raw_fd()))).is_empty());
}

#[test]
fn the_user_s_file_is_in_the_configuration_directory() {
    let user = |home: Option<&str>, config: Option<&str>| match Lookup::usual(
        home.map(Path::new),
        config.map(Path::new),
    ) {
        Lookup::Usual { user, .. } => user.map(|path| path.to_str().unwrap().to_owned()),
        Lookup::Named(_) => panic!("no file is named"),
    };
    assert_eq!(user(Some("/h"), None).as_deref(), Some("/h/.config/noetl/noetl.toml"));
    assert_eq!(user(Some("/h"), Some("/c")).as_deref(), Some("/c/noetl/noetl.toml"));
    assert_eq!(user(Some("/h"), Some("c")).as_deref(), Some("/h/.config/noetl/noetl.toml"));
    assert_eq!(user(None, None), None);
}

#[test]
fn the_reference_page_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/configuration.md");
    let found = fs::read_to_string(path).unwrap();
    assert!(found == reference::page(), "run scripts/configuration.sh");
}

proptest! {
    #[test]
    fn no_file_breaks_the_parser(content in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = FileLayer::parse(Path::new("f"), &content, true);
    }

    #[test]
    fn no_text_like_toml_breaks_the_parser(
        text in "(\\[{0,2}(server|worker|x)\\]{0,2}\n?|port|slots|labels| ?= ?|'|\"|[0-9]{1,20}|é|\n|,|\\{|\\})*"
    ) {
        if let Err(problems) = FileLayer::parse(Path::new("f"), text.as_bytes(), false) {
            for problem in problems {
                let position = problem.position.unwrap();
                prop_assert!(position.line <= text.matches('\n').count() + 1);
            }
        }
    }
}
