use insta::assert_snapshot;

use super::Site;
use crate::noetl::one_step;

#[test]
fn documents_are_registered_listed_and_read() {
    let site = Site::new();
    site.home.write("test.yaml", one_step("{kind: noop}"));
    assert_snapshot!(site.noetl(&["register", "playbook", "-f", "test.yaml"]).transcript(), @r"
    exit: 0
    --- stdout
    registered playbook tests/test version 1 ([id])
    --- stderr
    ");
    let output = site.raw(&["catalog", "register", "test.yaml", "--json"]);
    let reply = output.json();
    assert_eq!(
        (output.code, &reply["path"], &reply["version"]),
        (Some(0), &"tests/test".into(), &2.into())
    );

    assert_snapshot!(site.noetl(&["catalog", "list"]).transcript(), @r"
    exit: 0
    --- stdout
    PATH        KIND      VERSION  REGISTERED            ID
    tests/test  playbook  2        [time]  [id]
    --- stderr
    ");
    assert_snapshot!(site.noetl(&["list", "Playbook"]).transcript(), @r"
    exit: 0
    --- stdout
    PATH        KIND      VERSION  REGISTERED            ID
    tests/test  playbook  2        [time]  [id]
    --- stderr
    ");
    assert_snapshot!(site.noetl(&["catalog", "list", "subscription"]).transcript(), @r"
    exit: 0
    --- stdout
    no documents
    --- stderr
    ");
    let all = site.noetl(&["catalog", "list", "--all"]).stdout;
    assert_eq!(all.lines().count(), 3, "{all}");
    let listed = site.raw(&["catalog", "list", "playbook", "--output", "json"]).json();
    assert_eq!(listed["entries"].as_array().map(Vec::len), Some(2), "{listed}");

    let output = site.raw(&["catalog", "get", "tests/test", "--version", "1"]);
    assert_eq!((output.code, output.stdout), (Some(0), one_step("{kind: noop}")));
    let output = site.raw(&["catalog", "get", "tests/test", "--output", "yaml"]);
    assert!(output.stdout.contains("\nversion: 2\n"), "{}", output.stdout);
    assert!(
        output.stdout.contains("\ncontent: |\n  apiVersion: noetl.io/v2\n"),
        "{}",
        output.stdout
    );
}

#[test]
fn registering_a_directory_skips_only_rejected_documents() {
    let site = Site::new();
    std::fs::create_dir_all(site.home.path().join("books/deep")).unwrap();
    let named = |name: &str| one_step("{kind: noop}").replace("tests/test", name);
    site.home.write("books/a.yaml", named("tests/a"));
    site.home.write("books/bad.yaml", one_step("{kind: pyhton}"));
    site.home.write("books/deep/z.yml", named("tests/z"));
    site.home.write("books/other.yaml", "kind: Settings\n");
    let output = site.noetl(&["register", "playbook", "-d", "books"]);
    assert_snapshot!(output.transcript(), @r"
    exit: 2
    --- stdout
    registered playbook tests/a version 1 ([id])
    registered playbook tests/z version 1 ([id])
    --- stderr
    books/bad.yaml:7:18: error[E011]: unknown tool kind 'pyhton'
      at workflow[0].tool.kind
      help: did you mean 'python'? this version runs python, http, shell, noop, postgres, sqlite, duckdb, artifact, transfer, nats, secrets, workbook, playbook, wait or approval
    error: books/bad.yaml was not taken: 1 error
    books/other.yaml is a settings and was left out
    ");
    let list = site.raw(&["catalog", "list", "--json"]).json();
    let paths: Vec<_> = list["entries"].as_array().unwrap().iter().map(|it| &it["path"]).collect();
    assert_eq!(paths, ["tests/z", "tests/a"]);
}

#[test]
fn documents_are_validated_without_registration() {
    let site = Site::new();
    site.home.write("good.yaml", one_step("{kind: noop}"));
    site.home.write("bad.yaml", one_step("{kind: pyhton}"));
    let output = site.noetl(&["catalog", "validate", "good.yaml", "bad.yaml"]);
    assert_snapshot!(output.transcript(), @r"
    exit: 2
    --- stdout
    good.yaml: ok
    bad.yaml:7:18: error[E011]: unknown tool kind 'pyhton'
      at workflow[0].tool.kind
      help: did you mean 'python'? this version runs python, http, shell, noop, postgres, sqlite, duckdb, artifact, transfer, nats, secrets, workbook, playbook, wait or approval
    bad.yaml: not valid
    --- stderr
    ");
    let output = site.raw(&["catalog", "validate", "good.yaml", "--json"]);
    assert_eq!((output.code, &output.json()["valid"]), (Some(0), &true.into()), "{output:?}");
    assert_eq!(site.noetl(&["catalog", "list"]).stdout, "no documents\n");
}

#[test]
fn a_document_with_errors_is_registered_only_by_force() {
    let site = Site::new();
    site.home.write("bad.yaml", one_step("{kind: pyhton}"));
    let output = site.noetl(&["catalog", "register", "bad.yaml"]);
    assert_snapshot!(output.transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    bad.yaml:7:18: error[E011]: unknown tool kind 'pyhton'
      at workflow[0].tool.kind
      help: did you mean 'python'? this version runs python, http, shell, noop, postgres, sqlite, duckdb, artifact, transfer, nats, secrets, workbook, playbook, wait or approval
    error: bad.yaml was not taken: 1 error
    ");
    let output = site.raw(&["catalog", "register", "bad.yaml", "--force", "--json"]);
    assert_eq!((output.code, &output.json()["version"]), (Some(0), &1.into()), "{output:?}");
}
