//! Callers of a real identity provider.

use std::path::Path;
use std::process::Stdio;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use noetl_model::Tenant;
use noetl_secrets::{Role, TokenRequest};
use noetl_server::{Auth, Oidc, OidcSettings, Options};
use noetl_test_app::TestApp;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::api::{get, post};

/// A running provider. It ends when its input is closed, which this does when it is dropped.
struct Provider {
    address: String,
    server: Child,
}

impl Provider {
    async fn start() -> Option<Self> {
        if noetl_test_services::services_off("OpenID Connect provider") {
            return None;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/services/oidc.sh");
        let mut server = Command::new(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the script that starts an identity provider");
        let output = server.stdout.take().expect("a pipe");
        let line = BufReader::new(output).lines().next_line().await.expect("output");
        Some(Self { address: line.expect("the address of a provider"), server })
    }

    fn settings(&self) -> OidcSettings {
        OidcSettings {
            issuer: self.address.clone(),
            audience: "noetl".into(),
            roles_claim: "roles".into(),
            tenant_claim: None,
            client_id: Some("page".into()),
        }
    }

    async fn app(&self) -> TestApp {
        let auth = Auth::Oidc(Oidc::new(self.settings()).expect("a client"));
        let options = Options { auth, allow_any_host: true, ..Options::default() };
        TestApp::builder().slots(0).options(options).start().await
    }

    /// A token for a client, for this resource.
    async fn token(&self, client: &str, resource: &str) -> String {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let form = [("grant_type", "client_credentials"), ("resource", resource)];
        let client = client.replace('@', "%40");
        let asked = http.post(format!("{}/token", self.address));
        let asked = asked.basic_auth(client, Some("secret")).form(&form).send().await;
        let response: Value = asked.expect("an answer").json().await.expect("JSON");
        response["access_token"]
            .as_str()
            .unwrap_or_else(|| panic!("no token: {response}"))
            .to_owned()
    }

    /// Returns the code that the provider gives the browser after sign-in.
    async fn code(&self, redirect: &str, challenge: &str) -> String {
        let policy = reqwest::redirect::Policy::none();
        let http = reqwest::Client::builder().no_proxy().redirect(policy).build();
        let http = http.expect("a client");
        let mut cookies: Vec<String> = Vec::new();
        let mut address = format!(
            "{}/auth?response_type=code&client_id=page&scope=openid%20profile&state=s&\
             redirect_uri={redirect}&code_challenge={challenge}&code_challenge_method=S256",
            self.address
        );
        // There and back again: to the interaction, which signs in by itself, and to the page.
        for _ in 0..5 {
            let asked = http.get(&address).header("cookie", cookies.join("; "));
            let response = asked.send().await.expect("an answer");
            for cookie in response.headers().get_all("set-cookie") {
                let cookie = cookie.to_str().expect("text").split(';').next().unwrap_or_default();
                let name = format!("{}=", cookie.split('=').next().unwrap_or_default());
                cookies.retain(|known| !known.starts_with(&name));
                cookies.push(cookie.to_owned());
            }
            let next = response.headers().get("location").map(|next| next.to_str().expect("text"));
            let next = next.unwrap_or_else(|| panic!("{address}: {}", response.status()));
            if let Some((_, code)) = next.split_once("/sign-in?code=") {
                return code.split('&').next().unwrap_or_default().to_owned();
            }
            address = match next.starts_with('/') {
                true => format!("{}{next}", self.address),
                false => next.to_owned(),
            };
        }
        panic!("the provider sends nobody back: {address}");
    }

    async fn rotate(&self) {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        http.post(format!("{}/rotate", self.address)).send().await.expect("an answer");
    }
}

async fn asked(app: &TestApp, token: &str) -> (u16, Value) {
    get(app, "/api/whoami").header("authorization", &format!("Bearer {token}")).answer().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oidc_token_determines_roles_and_tenant() {
    // The typed client of an app sets up what the other clients here need.
    let early = TestApp::start(0).await;
    let Some(provider) = Provider::start().await else { return early.close().await };
    let app = provider.app().await;
    let viewer = provider.token("viewer@acme", "urn:noetl").await;
    let (status, who) = asked(&app, &viewer).await;
    assert_eq!(status, 200, "{who}");
    assert_eq!((&who["tenant"], &who["roles"]), (&json!("acme"), &json!(["viewer"])));
    let register = post(&app, "/api/catalog/register", r#"{"content":"a: 1"}"#);
    let refused = register.header("authorization", &format!("Bearer {viewer}")).answer().await;
    assert_eq!((refused.0, &refused.1["code"]), (403, &json!("role_missing")));

    let nothing = provider.token("nothing", "urn:noetl").await;
    assert_eq!(asked(&app, &nothing).await.0, 403, "no role is no right");

    // A token of ours is as good: workers have no browser.
    let request = TokenRequest { name: "w".into(), role: Role::Worker, lasts: None, pool: None };
    let ours =
        app.control.secrets.tokens.create(&Tenant::default(), request).await.expect("a token").1;
    assert_eq!(asked(&app, &ours).await.0, 200);
    app.close().await;
    early.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oidc_token_for_another_audience_or_with_changed_claims_is_refused() {
    let early = TestApp::start(0).await;
    let Some(provider) = Provider::start().await else { return early.close().await };
    let app = provider.app().await;
    let good = provider.token("viewer", "urn:noetl").await;
    let parts: Vec<&str> = good.split('.').collect();
    let encode = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = BASE64_URL_SAFE_NO_PAD.decode(parts[1]).expect("base64");
    let mut claims: Value = serde_json::from_slice(&claims).expect("claims");
    claims["roles"] = json!(["admin"]);
    let raised = format!("{}.{}.{}", parts[0], encode(claims.clone()), parts[2]);
    let unsigned = format!("{}.{}.", encode(json!({"alg": "none"})), encode(claims.clone()));
    let shared = format!("{}.{}.{}", encode(json!({"alg": "HS256"})), encode(claims), parts[2]);
    let other = provider.token("viewer", "urn:other").await;
    for (token, why) in [
        (raised, "changed claims"),
        (unsigned, "no signature"),
        (shared, "a shared secret"),
        (other, "another audience"),
        ("a.b.c".to_owned(), "no token"),
        (good[..good.len() - 2].to_owned(), "a cut signature"),
    ] {
        let (status, body) = asked(&app, &token).await;
        assert_eq!((status, &body["code"]), (401, &json!("not_authenticated")), "{why}: {body}");
    }
    assert_eq!(asked(&app, &good).await.0, 200, "and the good one is taken");
    app.close().await;
    early.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unavailable_provider_and_changed_keys_are_tolerated() {
    let early = TestApp::start(0).await;
    let Some(mut provider) = Provider::start().await else { return early.close().await };
    let before = provider.token("admin", "urn:noetl").await;
    let app = provider.app().await;
    assert_eq!(asked(&app, &before).await.0, 200);
    provider.rotate().await;
    let after = provider.token("admin", "urn:noetl").await;
    // Keys that were just read are not read again for unknown key names; a process that has not
    // read them yet gets the new one.
    let other = provider.app().await;
    assert_eq!(asked(&other, &after).await.0, 200);
    let third = provider.app().await;
    provider.server.kill().await.expect("killed");
    assert_eq!(asked(&app, &before).await.0, 200, "known keys go on to count");
    let (status, body) = asked(&third, &after).await;
    assert_eq!((status, &body["code"]), (503, &json!("identity_provider_unavailable")));
    for app in [app, other, third, early] {
        app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_accepts_messages_of_one_identity() {
    let early = TestApp::start(0).await;
    let Some(provider) = Provider::start().await else { return early.close().await };
    let app = TestApp::start(0).await;
    let document = format!(
        "kind: Subscription\nmetadata: {{name: pushed, path: sub/pushed}}\nspec:\n  source: webhook\n  \
         mode: push\n  dispatch: {{playbook: tests/greet}}\n  ingress: {{gateway_path: /ingress/pushed, \
         verify: {{type: pubsub_oidc, audience: noetl, service_account: worker, issuer: '{}'}}}}\n",
        provider.address
    );
    for text in [crate::api::GREET, &document] {
        let (status, body) = crate::api::register(&app, text).await;
        assert_eq!(status, 200, "{body}");
    }
    let sent = async |token: &str| {
        let asked = post(&app, "/ingress/pushed", r#"{"who":"Ada"}"#);
        let (status, body) = asked.header("authorization", token).answer().await;
        format!("{status} {}", body["code"].as_str().unwrap_or_default())
    };
    let bearer = async |client: &str, resource: &str| {
        format!("Bearer {}", provider.token(client, resource).await)
    };
    let good = bearer("worker", "urn:noetl").await;
    assert_eq!(sent(&good).await, "202 ");
    assert_eq!(sent(&bearer("viewer", "urn:noetl").await).await, "403 service_account_wrong");
    assert_eq!(sent(&bearer("worker", "urn:other").await).await, "403 audience_wrong");
    let (head, tail) = good.rsplit_once('.').expect("a signature");
    let turned: String = tail.chars().rev().collect();
    assert_eq!(sent(&format!("{head}.{turned}")).await, "401 token_wrong");
    assert_eq!(sent("Bearer a.b.c").await, "401 token_wrong");
    assert_eq!(sent("Bearer").await, "401 token_malformed");
    let absent = post(&app, "/ingress/pushed", "{}").answer().await;
    assert_eq!((absent.0, &absent.1["code"]), (401, &json!("token_missing")));
    app.close().await;
    early.close().await;
}

/// A proof key and its challenge, as RFC 7636 shows them.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

#[tokio::test(flavor = "multi_thread")]
async fn a_page_exchanges_a_code_for_a_valid_token() {
    let early = TestApp::start(0).await;
    let Some(provider) = Provider::start().await else { return early.close().await };
    let app = provider.app().await;
    let (status, mode) = get(&app, "/api/auth/mode").answer().await;
    assert_eq!((status, &mode["mode"]), (200, &json!("oidc")));
    let place = &mode["sign_in"];
    assert_eq!(place["authorization_endpoint"], format!("{}/auth", provider.address));
    assert_eq!((&place["client_id"], &place["audience"]), (&json!("page"), &json!("noetl")));

    let redirect = "http://127.0.0.1:1/sign-in";
    let trade = async |code: &str, verifier: &str| {
        let body = json!({"code": code, "code_verifier": verifier, "redirect_uri": redirect});
        post(&app, "/api/auth/oidc/token", body.to_string()).answer().await
    };
    let code = provider.code(redirect, CHALLENGE).await;
    let (status, response) = trade(&code, VERIFIER).await;
    assert_eq!(status, 200, "{response}");
    let token = response["token"].as_str().expect("a token");
    let (status, who) = asked(&app, token).await;
    assert_eq!((status, &who["roles"]), (200, &json!(["operator"])), "{who}");

    let code = provider.code(redirect, CHALLENGE).await;
    let (status, response) = trade(&code, &VERIFIER.replace('d', "e")).await;
    assert_eq!((status, &response["code"]), (401, &json!("not_authenticated")), "another's proof");
    let (status, response) = trade("nothing", VERIFIER).await;
    assert_eq!(status, 401, "{response}");
    assert!(
        response["message"].as_str().is_some_and(|why| why.contains("invalid_grant")),
        "{response}"
    );
    let (status, response) = trade("", VERIFIER).await;
    assert_eq!((status, &response["code"]), (422, &json!("invalid_code_request")));
    app.close().await;
    early.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_auth_mode_reports_that_no_sign_in_is_required() {
    let open = TestApp::start(0).await;
    let options = Options { auth: Auth::Token, allow_any_host: true, ..Options::default() };
    let token = TestApp::builder().slots(0).options(options).start().await;
    // Nothing answers there.
    let settings = |client_id| OidcSettings {
        issuer: "http://127.0.0.1:9".into(),
        audience: "noetl".into(),
        roles_claim: "roles".into(),
        tenant_claim: None,
        client_id,
    };
    let oidc = async |client_id| {
        let auth = Auth::Oidc(Oidc::new(settings(client_id)).expect("a client"));
        let options = Options { auth, allow_any_host: true, ..Options::default() };
        TestApp::builder().slots(0).options(options).start().await
    };
    let (without, away) = (oidc(None).await, oidc(Some("page".into())).await);
    let trouble = json!("the identity provider does not answer");
    let body = json!({"code": "c", "code_verifier": "v", "redirect_uri": "r"}).to_string();
    for (app, mode, why, code) in [
        (open, "open", Value::Null, "sign_in_not_configured"),
        (token, "token", Value::Null, "sign_in_not_configured"),
        (without, "oidc", Value::Null, "sign_in_not_configured"),
        (away, "oidc", trouble, "identity_provider_unavailable"),
    ] {
        let response = get(&app, "/api/auth/mode").answer().await;
        assert_eq!(response, (200, json!({"mode": mode, "sign_in": null, "trouble": why})));
        let (_, refused) = post(&app, "/api/auth/oidc/token", body.clone()).answer().await;
        assert_eq!(refused["code"], code, "{mode}");
        app.close().await;
    }
}
