//! Credentials that a run brings along, with a database that checks its passwords.

use std::fs;
use std::path::Path;

use noetl_test_services::postgres::TestServer;
use serde_json::json;

use crate::noetl::{CommandOutput, Home, playbook};

const PASSWORD: &str = "p@ss/word of \"app\"";

/// A server that lets the role `app` in by its password alone.
struct PasswordDatabase {
    server: TestServer,
    _rules: tempfile::TempDir,
}

impl PasswordDatabase {
    fn start() -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let rules = tempfile::tempdir().unwrap();
        fs::set_permissions(rules.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let file = rules.path().join("hba.conf");
        let text = "local all all trust\nhost all app 127.0.0.1/32 scram-sha-256\n\
                    host all all 127.0.0.1/32 trust\n";
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let server = TestServer::start(&[&format!("hba_file={}", file.display())]);
        server.psql(&format!("create role app login password '{PASSWORD}'"));
        Self { server, _rules: rules }
    }

    fn port(&self) -> u16 {
        let (_, rest) = self.server.url().rsplit_once(':').unwrap();
        rest.split('/').next().unwrap().parse().unwrap()
    }

    fn credential(&self, password: &str) -> String {
        json!([{"name": "shop", "type": "postgres", "data": {
            "host": "127.0.0.1", "port": self.port(), "user": "app", "password": password,
            "database": "postgres",
        }}])
        .to_string()
    }
}

fn asking() -> String {
    playbook(
        "{}",
        r#"  - step: start
    tool:
      kind: postgres
      auth: shop
      query: select current_user as who, 1 + 1 as two
    next: {arcs: [{step: look}]}
  - step: look
    tool: {kind: secrets, auth: shop, field: password}
    next: {arcs: [{step: pass}]}
  - step: pass
    tool:
      kind: postgres
      auth: shop
      query: select $1::text as given, length($1::text) as long
      params: ["{{ look.value }}"]
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop, result: {who: "{{ start.rows[0].who }}", given: "{{ pass.rows[0].given }}", long: "{{ pass.rows[0].long }}"}}
"#,
    )
}

fn assert_clean(what: &str, bytes: &[u8]) {
    let escaped = json!(PASSWORD).to_string();
    let forms = [
        PASSWORD.to_owned(),
        escaped[1..escaped.len() - 1].to_owned(),
        "p%40ss%2Fword%20of%20%22app%22".to_owned(),
        // Base64 of it, and of its middle wherever that begins.
        "cEBzcy93b3JkIG9mICJhcHAi".to_owned(),
        "QHNzL3dvcmQgb2Yg".to_owned(),
        "c3Mvd29yZCBvZiAi".to_owned(),
    ];
    for form in forms {
        let contains_form = bytes.windows(form.len()).any(|window| window == form.as_bytes());
        assert!(!contains_form, "{what} holds {form}");
    }
}

fn assert_clean_run(output: &CommandOutput) {
    assert_clean("stdout", output.stdout.as_bytes());
    assert_clean("stderr", output.stderr.as_bytes());
}

fn assert_clean_files(directory: &Path, prefix: &str) {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let database_files =
        files.filter(|it| it.file_name().unwrap().to_str().unwrap().starts_with(prefix));
    let database_files: Vec<_> = database_files.collect();
    assert!(!database_files.is_empty(), "there is a database");
    for file in database_files {
        assert_clean(&file.display().to_string(), &fs::read(&file).unwrap());
    }
}

#[test]
fn a_database_step_uses_its_alias_and_no_file_contains_the_password() {
    let (home, guarded) = (Home::with(&asking()), PasswordDatabase::start());
    home.write("c.json", guarded.credential(PASSWORD));
    let run = ["run", "test.yaml", "--credentials", "c.json", "--db", "t.db", "--output", "json"];
    let output = home.noetl(run);
    assert_eq!(output.code, Some(0), "{output:?}");
    let result = &output.json()["result"];
    // The database got the password, and what came back is its mark.
    let expected = json!({"who": "app", "given": "«secret:shop.password»", "long": PASSWORD.len()});
    assert_eq!(*result, expected);
    assert_clean_run(&output);
    assert_clean_files(home.path(), "t.db");
    assert!(
        home.path().join("encryption.key").exists(),
        "what stays in the file can be read later"
    );
    // Run again without the file: the database has the credential, and its key is in the same
    // directory.
    let output = home.noetl(["run", "test.yaml", "--db", "t.db", "--output", "json"]);
    assert_eq!((output.code, &output.json()["result"]), (Some(0), &expected), "{output:?}");
}

#[test]
fn a_wrong_password_is_an_auth_failure_without_the_password() {
    let (home, guarded) = (Home::with(&asking()), PasswordDatabase::start());
    home.write("c.json", guarded.credential("some other password"));
    let output = home.noetl(["run", "test.yaml", "--credentials", "c.json", "--output", "json"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    let error = output.json()["error"].to_string();
    assert!(error.contains("app"), "{error}");
    assert!(!output.stdout.contains("some other password"), "{output:?}");
    assert!(!home.path().join("encryption.key").exists(), "a run in memory leaves nothing");
}

#[test]
fn a_run_without_credentials_names_the_missing_ones_and_how_to_supply_them() {
    let home = Home::with(&asking());
    let output = home.noetl(["run", "test.yaml"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("there is no credential 'shop'"), "{}", output.stderr);
    assert!(output.stderr.contains("noetl run --credentials FILE"), "{}", output.stderr);
}

#[test]
fn an_invalid_credential_file_fails_the_run_and_a_short_secret_causes_a_warning() {
    let home = Home::with(&playbook("{}", "  - {step: start, tool: {kind: noop, result: done}}\n"));
    home.write("bad.yaml", "shop: {data: {password: sesame}}\n");
    let output = home.noetl(["run", "test.yaml", "--credentials", "bad.yaml"]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("'shop' has no 'type'"), "{}", output.stderr);
    assert!(!output.stderr.contains("sesame"), "{}", output.stderr);
    home.write("short.yaml", "shop: {type: basic, data: {user: u, password: sesame}}\n");
    let output = home.noetl(["run", "test.yaml", "--credentials", "short.yaml"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "done\n"), "{output:?}");
    assert!(
        output.stderr.contains("credential 'shop': 'password' is shorter than 8"),
        "{output:?}"
    );
}

#[test]
fn credentials_in_a_shared_database_require_an_explicit_key() {
    let home = Home::with(&playbook("{}", "  - {step: start, tool: {kind: noop}}\n"));
    home.write("c.yaml", "shop: {type: basic, data: {user: u, password: long enough}}\n");
    let url = "postgres://nobody@127.0.0.1:1/none";
    let output = home.noetl(["run", "test.yaml", "--credentials", "c.yaml", "--database-url", url]);
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(output.stderr.contains("NOETL_ENCRYPTION_KEY"), "{}", output.stderr);
}
