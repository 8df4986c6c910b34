use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::Site;
use crate::dev_process::DevProcess;
use crate::noetl::Home;

/// An authority, and a certificate of it for this machine with its key, as PEM.
fn authority() -> (String, String, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let own = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
    (authority.pem(), own.pem(), key.serialize_pem())
}

#[test]
fn a_tls_server_is_called_with_a_ca_and_a_client_certificate() {
    let home = Home::new();
    let (ca, certificate, key) = authority();
    for (name, text) in [("ca.pem", ca), ("cert.pem", certificate), ("key.pem", key)] {
        home.write(name, text);
    }
    let at = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let settings = [
        ("NOETL_TLS_CERT", &*at("cert.pem")),
        ("NOETL_TLS_KEY", &*at("key.pem")),
        ("NOETL_TLS_CLIENT_CA", &*at("ca.pem")),
    ];
    let dev = DevProcess::start_with(&home.path().join("data"), &settings);
    let url = dev.client.base().to_string();
    assert!(url.starts_with("https://"), "{url}");
    let site = Site { home, dev, url };
    let asked = |variables: &[(&str, &str)]| {
        let mut command = site.command(&["executions"]);
        site.home.end_of(command.envs(variables.iter().copied()))
    };

    assert_eq!(asked(&[]).code, Some(3), "an authority nobody knows");
    assert_eq!(asked(&[("NOETL_TLS_CA", "ca.pem")]).code, Some(3), "no certificate of its own");
    let all = [
        ("NOETL_TLS_CA", "ca.pem"),
        ("NOETL_TLS_CLIENT_CERT", "cert.pem"),
        ("NOETL_TLS_CLIENT_KEY", "key.pem"),
    ];
    let output = asked(&all);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "no executions\n"), "{output:?}");

    let half = asked(&all[..2]);
    assert_eq!(half.code, Some(3));
    let expected = "NOETL_TLS_CLIENT_CERT is set and NOETL_TLS_CLIENT_KEY is not";
    assert!(half.stderr.contains(expected), "{}", half.stderr);
    let missing = asked(&[("NOETL_TLS_CA", "none.pem")]);
    assert!(missing.stderr.contains("NOETL_TLS_CA: none.pem cannot be read"), "{missing:?}");
    let wrong = asked(&[("NOETL_TLS_CA", "data/noetl.db")]);
    assert!(wrong.stderr.contains("holds no certificate as PEM"), "{wrong:?}");
}
