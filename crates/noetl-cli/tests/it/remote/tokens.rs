use insta::assert_snapshot;
use noetl_model::Tenant;
use noetl_store::{AuditFilter, SecretAuditStore as _};
use noetl_store_sqlite::SqliteStore;

use super::Site;
use crate::dev_process::DevProcess;
use crate::noetl::{CommandOutput, Home};

#[test]
fn tokens_are_created_listed_and_revoked_directly_on_the_database() {
    let home = Home::new();
    let noetl = |arguments: &[&str]| -> CommandOutput {
        let mut command = home.command(arguments);
        home.end_of(command.args(["--database-url", "sqlite://noetl.db"]))
    };
    assert_eq!(home.noetl(["db", "migrate", "--database-url", "sqlite://noetl.db"]).code, Some(0));
    let made = noetl(&["token", "create", "--role", "viewer", "--expires", "1h", "--name", "x"]);
    let token = made.stdout.trim();
    assert!(made.code == Some(0) && token.starts_with("noetl_"), "{made:?}");
    let secret = token.splitn(3, '_').nth(2).unwrap();
    assert!(secret.len() > 20 && !made.stderr.contains(secret), "{}", made.stderr);
    let other = noetl(&["token", "create", "--role", "admin", "--tenant", "acme", "--json"]).json();
    assert_eq!((&other["tenant"], &other["role"]), (&"acme".into(), &"admin".into()));
    let list = noetl(&["token", "list", "--json"]).json();
    assert_eq!(list["tokens"].as_array().map(Vec::len), Some(1), "{list}");
    let ended = noetl(&["token", "revoke", token]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let list = noetl(&["token", "list"]).stdout;
    assert!(list.contains("  revoked  "), "{list}");
    assert_snapshot!(noetl(&["token", "revoke", "nobody"]).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: tenant default has no token 'nobody'
      help: `noetl token list` shows the ids there are
    ");
    assert_snapshot!(noetl(&["token", "create", "--role", "king"]).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: a role is admin, operator, author, viewer or worker, not 'king'
    ");
}

#[tokio::test]
async fn token_changes_made_directly_on_the_database_are_audited() {
    let home = Home::new();
    let noetl = |arguments: &[&str]| -> CommandOutput {
        let mut command = home.command(arguments);
        home.end_of(command.args(["--database-url", "sqlite://noetl.db"]).env("USER", "ada"))
    };
    assert_eq!(noetl(&["db", "migrate"]).code, Some(0));
    let made = noetl(&["token", "create", "--role", "viewer", "--name", "x"]);
    let token = made.stdout.trim();
    let head = noetl(&["audit", "verify"]);
    assert!(head.code == Some(0) && head.stderr.contains("sound (1 uses, 0 purged)"), "{head:?}");
    assert_eq!(noetl(&["token", "create", "--role", "admin", "--tenant", "acme"]).code, Some(0));
    assert_eq!(noetl(&["token", "revoke", token]).code, Some(0));
    // What is refused changes nothing, and neither does looking.
    assert_eq!(noetl(&["token", "revoke", "nobody"]).code, Some(2));
    assert_eq!(noetl(&["token", "create", "--role", "king"]).code, Some(2));
    assert_eq!(noetl(&["token", "list"]).code, Some(0));
    let verified = noetl(&["audit", "verify", "--head", head.stdout.trim(), "--output", "json"]);
    let output = verified.json();
    assert_eq!(
        (&output["uses"], &output["problems"]),
        (&3.into(), &serde_json::json!([])),
        "{output}"
    );

    let file = noetl_store_sqlite::Options::file(home.path().join("noetl.db"));
    let store = SqliteStore::open(file).unwrap();
    let filter = AuditFilter { limit: 10, ..AuditFilter::default() };
    let uses = store.secret_uses(&Tenant::default(), &filter).await.unwrap();
    let output: Vec<(&str, &str, Option<&str>)> = uses
        .iter()
        .map(|used| (&*used.operation, &*used.credential, used.worker.as_deref()))
        .collect();
    let (who, name) =
        ("ada (on the database)", format!("x ({})", token.split('_').nth(1).unwrap()));
    let expected = [("token.revoke", &*name, Some(who)), ("token.create", &*name, Some(who))];
    assert_eq!(output, expected, "the other one is of another tenant");
}

/// Starts a server that requires tokens. Returns it with a token of an admin.
fn closed() -> (Site, String) {
    let home = Home::new();
    let url = format!("sqlite://{}", home.path().join("data/noetl.db").display());
    std::fs::create_dir(home.path().join("data")).unwrap();
    let made = home.noetl(["token", "create", "--role", "admin", "--database-url", &url]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let dev = DevProcess::start_with(&home.path().join("data"), &[("NOETL_AUTH", "token")]);
    let url = dev.client.base().to_string();
    (Site { home, dev, url }, made.stdout.trim().to_owned())
}

#[test]
fn a_call_without_a_required_token_names_the_setting() {
    let (site, admin) = closed();
    assert_snapshot!(site.noetl(&["executions"]).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: a token is needed, as 'Authorization: Bearer <token>'
      help: give a token with --token, NOETL_TOKEN or `noetl context update NAME --token -`; an admin makes one with `noetl token create`
    ");
    let wrong = site.noetl(&["executions", "--token", "noetl_a_b"]);
    assert_snapshot!(wrong.transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: the token is unknown, expired or revoked
      help: the token is not one of this server, or does not count any more; an admin makes another with `noetl token create`
    ");
    let made = site.raw(&["token", "create", "--role", "viewer", "--token", &admin]);
    let viewer = made.stdout.trim().to_owned();
    assert_eq!(made.code, Some(0), "{made:?}");
    assert_eq!(site.raw(&["executions", "--token", &viewer]).code, Some(0));

    site.home.write("test.yaml", crate::noetl::one_step("{kind: noop}"));
    let register = ["register", "playbook", "-f", "test.yaml", "--token", &viewer];
    let output = site.raw(&register);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("this needs one of the roles"), "{}", output.stderr);
    assert!(output.stderr.contains("noetl token create --role"), "{}", output.stderr);

    // The context's token is used for its server.
    let url = site.dev.client.base().to_string();
    let add = ["context", "add", "here", "--server-url", &url, "--token", &admin];
    assert_eq!(site.raw(&add).code, Some(0));
    let output = site.home.end_of(site.command(&["token", "list"]).env_remove("NOETL_SERVER_URL"));
    assert_eq!((output.code, output.stdout.lines().count()), (Some(0), 4), "{output:?}");
    let doctor = site.raw(&["doctor", "--context", "here", "--json"]).json();
    let check = doctor["checks"].as_array().unwrap().iter().find(|it| it["name"] == "token");
    assert!(check.unwrap()["message"].as_str().unwrap().contains("roles: admin"), "{doctor}");
}
