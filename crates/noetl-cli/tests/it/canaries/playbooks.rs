//! Playbooks that pass a canary to each tool and repeat it in results, errors, printed lines, and
//! other outputs of the tool.

/// Name, text, and how it ends.
pub(super) fn all(echo: &str) -> Vec<(&'static str, String, &'static str)> {
    let (ok, bad) = ("COMPLETED", "FAILED");
    vec![
        ("http", of("http", "", HTTP), ok),
        ("http-fails", of("http", "", HTTP_FAILS), bad),
        ("postgres", of("postgres", "", POSTGRES), ok),
        ("postgres-fails", of("postgres", "", POSTGRES_FAILS), bad),
        ("sqlite", of("sqlite", "", SQLITE), ok),
        ("sqlite-fails", of("sqlite", "", SQLITE_FAILS), bad),
        ("shell", of("shell", "", SHELL), ok),
        ("shell-fails", of("shell", "", SHELL_FAILS), bad),
        ("python", of("python", "", PYTHON), ok),
        ("python-fails", of("python", "", PYTHON_FAILS), bad),
        ("nats", of("nats", "", NATS), ok),
        ("nats-fails", of("nats", "", NATS_FAILS), bad),
        ("artifact", of("artifact", "", ARTIFACT), ok),
        ("transfer", of("transfer", "", TRANSFER), ok),
        ("transfer-fails", of("transfer", "", TRANSFER_FAILS), bad),
        ("secrets", of("secrets", "", SECRETS), ok),
        ("workbook", of("workbook", WORKBOOK_TASK, WORKBOOK), ok),
        // The child first, which is a playbook of its own.
        ("child", child(), ok),
        ("playbook", of("playbook", "", PLAYBOOK), ok),
        ("notify", of("notify", &notify(echo), NOTIFY), bad),
        ("pipeline", of("pipeline", "", PIPELINE), ok),
        ("failure", of("failure", "", FAILURE), bad),
    ]
}

fn of(tool: &str, root: &str, steps: &str) -> String {
    format!(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: {tool}, path: canaries/{tool}}}\n\
         workload: {{echo: '', nats: '', db: '', file: ''}}\n\
         keychain:\n  - {{name: c, kind: credential, credential: canary_{tool}}}\n{root}workflow:{steps}"
    )
}

const HTTP: &str = r#"
  - step: start
    tool:
      kind: http
      method: POST
      url: "{{ workload.echo }}/plain?q={{ keychain.c.token | urlencode }}"
      headers: {X-Canary: "{{ keychain.c.token }}", Authorization: "Basic {{ ('user:' ~ keychain.c.token) | b64encode }}"}
      body: {given: "{{ keychain.c.token }}"}
    next: {arcs: [{step: auth}]}
  - step: auth
    tool: {kind: http, auth: canary_http, url: "{{ workload.echo }}/auth"}
    next: {arcs: [{step: again}]}
  - step: again
    tool: {kind: http, method: POST, url: "{{ workload.echo }}/again", body: {said: "{{ start }}"}}
    set: {ctx.kept: "{{ output }}"}
"#;

const HTTP_FAILS: &str = r#"
  - step: start
    tool: {kind: http, url: "{{ workload.echo }}/fail?q={{ keychain.c.token | urlencode }}", headers: {X-Canary: "{{ keychain.c.token }}"}}
"#;

const POSTGRES: &str = r#"
  - step: start
    tool: {kind: postgres, connection: "{{ workload.db }}", query: "select $1::text as given, md5($1::text) as sum", params: ["{{ keychain.c.token }}"]}
"#;

const POSTGRES_FAILS: &str = r#"
  - step: start
    tool: {kind: postgres, connection: "{{ workload.db }}", query: "select ($1::text)::integer", params: ["{{ keychain.c.token }}"]}
"#;

const SQLITE: &str = r#"
  - step: start
    tool: {kind: sqlite, db_path: "{{ workload.file }}", query: "select :t as given, upper(:t) as loud", params: {t: "{{ keychain.c.token }}"}}
"#;

const SQLITE_FAILS: &str = r#"
  - step: start
    tool: {kind: sqlite, db_path: "{{ workload.file }}", query: "select json_extract(:t, '$') from [{{ keychain.c.token }}]", params: {t: "{{ keychain.c.token }}"}}
"#;

const SHELL: &str = r#"
  - step: start
    tool:
      kind: shell
      env: {CANARY: "{{ keychain.c.token }}"}
      input: {given: "{{ keychain.c.token }}"}
      command: |
        echo "plain $CANARY"; printf %s "$CANARY" | base64; printf %s "xx$CANARY" | base64 -w0; echo "err $CANARY" >&2; echo "$NOETL_INPUT"; env
    next: {arcs: [{step: again}]}
  - step: again
    tool: {kind: shell, env: {SAID: "{{ start.stdout }}"}, command: 'echo "$SAID"'}
"#;

const SHELL_FAILS: &str = r#"
  - step: start
    tool: {kind: shell, env: {CANARY: "{{ keychain.c.token }}"}, command: 'echo "$CANARY"; echo "no way with $CANARY" >&2; exit 3'}
"#;

const PYTHON: &str = r#"
  - step: start
    tool:
      kind: python
      input: {token: "{{ keychain.c.token }}"}
      env: {CANARY: "{{ keychain.c.token }}"}
      code: |
        import base64, json, os, sys, urllib.parse
        print("printed", token)
        print("printed too", os.environ["CANARY"], file=sys.stderr)
        result = {"plain": token, token: "a key", "base64": base64.b64encode(("u:" + token).encode()).decode(),
                  "url": urllib.parse.quote(token), "json": json.dumps({"t": token}), "list": [[token]]}
    next: {arcs: [{step: again}]}
  - step: again
    loop: {in: "{{ [1, 2] }}", iterator: n}
    tool:
      kind: python
      input: {said: "{{ start }}", token: "{{ keychain.c.token }}"}
      code: "result = [said, token]"
    set: {ctx.kept: "{{ output }}"}
"#;

const PYTHON_FAILS: &str = r#"
  - step: start
    tool:
      kind: python
      input: {token: "{{ keychain.c.token }}"}
      code: |
        print(token)
        raise ValueError("wrong: " + token)
"#;

const NATS: &str = r#"
  - step: start
    tool:
      - {name: put, kind: nats, url: "{{ workload.nats }}", action: kv_put, create_bucket: true, bucket: canaries, key: one, value: {given: "{{ keychain.c.token }}"}}
      - {name: get, kind: nats, url: "{{ workload.nats }}", action: kv_get, bucket: canaries, key: one}
"#;

const NATS_FAILS: &str = r#"
  - step: start
    tool: {kind: nats, url: "{{ workload.nats }}", action: publish, subject: "{{ keychain.c.token }}", data: "{{ keychain.c.token }}", jetstream: true}
"#;

const ARTIFACT: &str = r#"
  - step: start
    tool: {kind: artifact, action: put, input: {value: {given: "{{ keychain.c.token }}", large: "{{ 'x' * 100000 }}"}}}
    next: {arcs: [{step: load}]}
  - step: load
    tool: {kind: artifact, action: get, input: {result_ref: "{{ start.ref }}"}}
    next: {arcs: [{step: large}]}
  - step: large
    tool: {kind: python, input: {token: "{{ keychain.c.token }}"}, code: "result = {'rows': [token] * 5000}"}
"#;

const TRANSFER: &str = r#"
  - step: start
    tool: {kind: sqlite, db_path: "{{ workload.file }}", query: "create table if not exists moved (who text)"}
    next: {arcs: [{step: other}]}
  - step: other
    tool: {kind: sqlite, db_path: "{{ workload.file }}.other", query: "create table if not exists t (a text)"}
    next: {arcs: [{step: move}]}
  - step: move
    tool:
      kind: transfer
      source: {kind: sqlite, db_path: "{{ workload.file }}.other", query: "select :t as who", params: {t: "{{ keychain.c.token }}"}}
      target: {kind: sqlite, db_path: "{{ workload.file }}", table: moved}
    next: {arcs: [{step: look}]}
  - step: look
    tool: {kind: sqlite, db_path: "{{ workload.file }}", query: "select who from moved"}
"#;

const TRANSFER_FAILS: &str = r#"
  - step: start
    tool:
      kind: transfer
      source: {kind: sqlite, db_path: "{{ workload.file }}", query: "select :t as [{{ keychain.c.token }}]", params: {t: "{{ keychain.c.token }}"}}
      target: {kind: sqlite, db_path: "{{ workload.file }}", table: "{{ keychain.c.token }}"}
"#;

const SECRETS: &str = r#"
  - step: start
    tool: {kind: secrets, auth: canary_secrets, field: token}
    next: {arcs: [{step: pass}]}
  - step: pass
    tool: {kind: python, input: {token: "{{ start.value }}"}, code: "result = {'again': token, 'long': len(token)}"}
"#;

const WORKBOOK_TASK: &str = r#"workbook:
  - name: sing
    tool: {kind: python, input: {token: "{{ keychain.c.token }}"}, code: "print(token); result = {'v': token}"}
"#;

const WORKBOOK: &str = r#"
  - step: start
    tool: {kind: workbook, name: sing}
"#;

const PLAYBOOK: &str = r#"
  - step: start
    tool: {kind: secrets, auth: canary_playbook, field: token}
    next: {arcs: [{step: call}]}
  - step: call
    tool: {kind: playbook, path: canaries/child, payload: {token: "{{ start.value }}"}, return_result: true}
"#;

fn child() -> String {
    "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: child, path: canaries/child}\nworkload: {token: none}\n\
     workflow:\n  - step: start\n    tool: {kind: python, input: {token: '{{ workload.token }}'}, code: \"print(token); result = {'said': token}\"}\n"
        .to_owned()
}

fn notify(echo: &str) -> String {
    format!("spec:\n  notify: {{on: [failed, completed], webhook: \"{echo}/notice\"}}\n")
}

const NOTIFY: &str = r#"
  - step: start
    tool: {kind: python, input: {token: "{{ keychain.c.token }}"}, code: "raise RuntimeError('told ' + token)"}
"#;

const PIPELINE: &str = r#"
  - step: start
    tool:
      - {name: get, kind: secrets, auth: canary_pipeline, field: token}
      - {name: use, kind: shell, env: {T: "{{ get.value }}"}, command: 'echo "used $T"'}
      - name: pass
        kind: python
        input: {a: "{{ get.value }}", b: "{{ use.stdout }}"}
        code: "result = {'a': a, 'b': b}"
      - name: broken
        kind: shell
        env: {T: "{{ _prev.a }}"}
        command: 'echo "broken $T" >&2; exit 4'
        spec: {policy: {rules: [{when: "{{ output.status == 'error' }}", then: {do: continue}}, {else: {then: {do: continue}}}]}}
"#;

const FAILURE: &str = r#"
  - step: start
    tool:
      - {name: first, kind: python, input: {t: "{{ keychain.c.token }}"}, code: "result = t"}
      - name: second
        kind: python
        input: {t: "{{ keychain.c.token }}", before: "{{ first }}"}
        code: |
          raise KeyError(t)
    next: {arcs: [{step: told, on: error, set: {ctx.told: "{{ output.error.message }}"}}]}
  - step: told
    tool: {kind: shell, env: {SAID: "{{ ctx.told }}"}, command: 'echo "$SAID"; exit 9'}
"#;
