use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::routing::get;
use reqwest::Client;
use tokio::net::TcpListener;

use super::*;

fn policy(reach: DefaultAccess, listed: &str) -> EgressPolicy {
    EgressPolicy::new(reach, listed).expect("a policy")
}

fn may(policy: &EgressPolicy, url: &str) -> bool {
    policy.check(&Url::parse(url).expect("a URL")).is_ok()
}

#[test]
fn an_address_is_recognized_in_every_notation() {
    let public = policy(DefaultAccess::Public, "");
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "0x7f.1",
        "017700000001",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::7f00:1]",
        "[64:ff9b::a00:1]",
        "[2002:7f00:1::]",
        "10.0.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "１２７.０.０.１",
        "127。0。0。1",
    ] {
        assert!(!may(&public, &format!("http://{host}/")), "{host}");
        assert!(!may(&public, &format!("https://user:pass@{host}:8443/x?y")), "{host}");
    }
    for host in ["1.1.1.1", "[2606:4700::1111]", "example.org", "localhost"] {
        assert!(may(&public, &format!("http://{host}/")), "{host} is looked at when resolved");
    }
}

#[test]
fn the_default_policy_denies_only_metadata_endpoints() {
    let usual = EgressPolicy::default();
    for host in ["169.254.169.254", "2852039166", "[::ffff:a9fe:a9fe]", "[fd00:ec2::254]"] {
        assert!(!may(&usual, &format!("http://{host}/latest/meta-data/")), "{host}");
    }
    for host in ["127.0.0.1", "10.0.0.1", "[::1]", "example.org"] {
        assert!(may(&usual, &format!("http://{host}/")), "{host}");
    }
    assert!(may(&policy(DefaultAccess::Everything, ""), "http://169.254.169.254/"));
}

#[test]
fn listed_addresses_are_allowed() {
    let some = policy(DefaultAccess::Public, "10.1.0.0/16, 169.254.169.254");
    assert!(may(&some, "http://10.1.2.3/") && may(&some, "http://169.254.169.254/"));
    assert!(!may(&some, "http://10.2.0.1/") && !may(&some, "http://169.254.169.253/"));
    let only = policy(DefaultAccess::Nothing, "api.example.org, *.partner.example");
    for good in ["http://api.example.org/", "https://API.example.org./", "http://a.partner.example"]
    {
        assert!(may(&only, good), "{good}");
    }
    for bad in [
        "http://example.org/",
        "http://api.example.org.evil.example/",
        "http://partner.example/",
        "http://evilpartner.example/",
        "http://1.1.1.1/",
        "http://api.example.org@evil.example/",
    ] {
        assert!(!may(&only, bad), "{bad}");
    }
}

#[test]
fn malformed_list_entries_are_rejected() {
    for entry in [
        "http://a.example",
        "a.example/x",
        "a.example:80",
        "10.0.0.0/64",
        "*",
        "*.",
        "a b",
        "0x7f.1",
        "user@a.example",
    ] {
        let error = EgressPolicy::new(DefaultAccess::Nothing, &format!("good.example,{entry}"));
        assert!(error.expect_err(entry).to_string().contains(entry), "{entry}");
    }
}

/// Returns a client under `policy` without a connection pool that resolves names with `look_up`.
fn client(policy: &EgressPolicy, look_up: LookUp) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let resolver = Arc::new(Guarded { policy: policy.clone(), look_up });
    let client = Client::builder().no_proxy().pool_max_idle_per_host(0).dns_resolver(resolver);
    client.redirect(policy.redirects(3)).build().expect("a client")
}

/// Starts a server on this address that serves `/` and redirects from `/to?<address>`.
async fn server(address: &str) -> u16 {
    let redirect = |query: axum::extract::RawQuery| async move {
        (StatusCode::FOUND, [(LOCATION, query.0.unwrap_or_default())])
    };
    let routes = Router::new().route("/", get(|| async { "here" })).route("/to", get(redirect));
    let listener = TcpListener::bind((address, 0)).await.expect("a listener");
    let port = listener.local_addr().expect("its address").port();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    port
}

fn answer(addresses: &[&str]) -> Resolving {
    let socket_addrs: Vec<SocketAddr> = addresses
        .iter()
        .map(|text| SocketAddr::new(text.parse().expect("an address"), 0))
        .collect();
    Box::pin(async move { Ok(Box::new(socket_addrs.into_iter()) as Addrs) })
}

#[tokio::test]
async fn a_name_whose_address_changes_is_checked_on_each_connection() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    fn changing(_: String) -> Resolving {
        match ASKED.fetch_add(1, Ordering::SeqCst) {
            0 => answer(&["127.0.0.2"]),
            _ => answer(&["127.0.0.1"]),
        }
    }
    // On every address of this machine, so that nothing but the policy stops the second request.
    let port = server("0.0.0.0").await;
    let policy = policy(DefaultAccess::Public, "127.0.0.2");
    let client = client(&policy, changing);
    let url = Url::parse(&format!("http://rebinding.test:{port}/")).expect("a URL");
    for _ in 0..2 {
        assert!(policy.check(&url).is_ok(), "its name says nothing");
    }
    let first = client.get(url.clone()).send().await.expect("an answer");
    assert_eq!(first.text().await.expect("a text"), "here");
    let second = client.get(url).send().await.expect_err("the policy denies it");
    assert_eq!(refusal(&second).expect("a refusal").host, "rebinding.test");
    assert!(!format!("{second:?}").contains("127.0.0.1"), "the address is nobody's business");
}

#[tokio::test]
async fn only_permitted_addresses_of_a_name_are_tried() {
    fn mixed(_: String) -> Resolving {
        answer(&["169.254.169.254", "::ffff:169.254.169.254", "127.0.0.1"])
    }
    let port = server("127.0.0.1").await;
    let asked = client(&EgressPolicy::default(), mixed).get(format!("http://mixed.test:{port}/"));
    assert_eq!(asked.send().await.expect("an answer").text().await.expect("a text"), "here");
}

#[tokio::test]
async fn a_redirect_to_a_denied_address_fails() {
    fn inside(name: String) -> Resolving {
        match name.as_str() {
            "inside.test" => answer(&["10.0.0.1"]),
            _ => answer(&["127.0.0.1"]),
        }
    }
    let port = server("127.0.0.1").await;
    let policy = policy(DefaultAccess::Public, "outside.test");
    let client = client(&policy, inside);
    let from = format!("http://outside.test:{port}");
    for to in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        "http://169.254.169.254/latest".to_owned(),
        format!("http://inside.test:{port}/"),
        // Over two hops, the first of which is allowed.
        format!("{from}/to?http://0x7f000001:{port}/"),
    ] {
        let asked = client.get(format!("{from}/to?{to}")).send().await;
        let error = asked.expect_err(&to);
        assert!(refusal(&error).is_some(), "{to}: {error:?}");
    }
    let asked = client.get(format!("{from}/to?{from}/")).send().await.expect("an answer");
    assert_eq!(asked.text().await.expect("a text"), "here");
    let around = client.get(format!("{from}/to?/to?/to?/to?/to?/to")).send().await;
    assert!(around.is_err(), "a ring of redirects ends");
}

#[tokio::test]
async fn names_of_the_local_machine_are_resolved_and_denied() {
    let port = server("127.0.0.1").await;
    for name in ["localhost", "LOCALHOST"] {
        let url = format!("http://{name}:{port}/");
        let error = client(&policy(DefaultAccess::Public, ""), look_up).get(&url).send().await;
        assert!(refusal(&error.expect_err(name)).is_some(), "{name}");
        let listed =
            client(&policy(DefaultAccess::Public, "localhost"), look_up).get(&url).send().await;
        assert!(listed.is_ok(), "{name}: {listed:?}");
    }
}
