use std::time::Duration;

use super::*;

const DISABLED: &str = "OTEL_SDK_DISABLED";
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
const QUEUE: &str = "OTEL_BSP_MAX_QUEUE_SIZE";
const DELAY: &str = "OTEL_BSP_SCHEDULE_DELAY";

fn with<T>(
    variables: &[(&str, &str)],
    ask: impl Fn(&TraceExport<'_>) -> Result<T, CliError>,
) -> Result<T, String> {
    let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
    let settings = noetl_config::Settings::new(Vec::new(), variables);
    let export = TraceExport::configured(&settings);
    export.and_then(|export| ask(&export)).map_err(|failure| failure.text())
}

fn settings(variables: &[(&str, &str)]) -> Option<ExporterSettings> {
    with(variables, |export| export.settings()).unwrap()
}

fn refused(variables: &[(&str, &str)]) -> String {
    with(variables, |export| export.settings().and(export.sampler()))
        .expect_err("the settings are wrong")
}

const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");

#[test]
fn spans_are_not_exported_by_default() {
    assert!(settings(&[]).is_none());
    assert!(settings(&[ENDPOINT, (DISABLED, "true")]).is_none());
    assert!(settings(&[ENDPOINT, (EXPORTER, "none")]).is_none());
    assert!(settings(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]).is_none());
}

#[test]
fn the_endpoint_is_a_base_address_or_a_full_url() {
    let endpoint = |variables: &[(&str, &str)]| settings(variables).unwrap().endpoint;
    assert_eq!(endpoint(&[ENDPOINT]), "http://collector:4318/v1/traces");
    let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces.example/in/");
    assert_eq!(endpoint(&[ENDPOINT, own]), "https://traces.example/in/");
    assert_eq!(endpoint(&[(EXPORTER, "otlp")]), "http://localhost:4318/v1/traces");
}

#[test]
fn other_settings_have_the_defaults_of_the_specification() {
    let usual = settings(&[ENDPOINT]).unwrap();
    assert_eq!((usual.queue, usual.batch), (2048, 512));
    assert_eq!(usual.timeout, Duration::from_secs(10));
    assert_eq!(usual.resource[0], ("service.name".to_owned(), "noetl".to_owned()));
    let configured = settings(&[
        ENDPOINT,
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-all=1"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "authorization=Bearer%20a%2Cb, x=y=z,"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
        (RESOURCE, "service.name=other,deployment.environment=test"),
        (SERVICE_NAME, "mine"),
        (QUEUE, "10"),
        (DELAY, "0"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
    ]);
    let configured = configured.unwrap();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(configured.headers, [pair("authorization", "Bearer a,b"), pair("x", "y=z")]);
    assert_eq!(configured.timeout, Duration::from_millis(1500));
    assert_eq!((configured.queue, configured.batch, configured.delay), (10, 10, Duration::ZERO));
    assert_eq!(configured.resource[0], pair("deployment.environment", "test"));
    assert_eq!(configured.resource[1], pair("service.name", "mine"));
}

#[test]
fn samplers_are_selected_by_their_names() {
    let sampler = |name: &str, argument: &str| {
        let variables = [(SAMPLER, name), (SAMPLER_ARGUMENT, argument)];
        with(&variables, |export| export.sampler()).unwrap()
    };
    let quarter = RootSampling::Share(Ratio::new(0.25).unwrap());
    assert_eq!(sampler("", ""), Sampler::default());
    assert_eq!(sampler("parentbased_always_on", ""), Sampler::default());
    assert_eq!(
        sampler("always_off", ""),
        Sampler { root: RootSampling::None, follows_caller: false }
    );
    assert_eq!(
        sampler("parentbased_traceidratio", "0.25"),
        Sampler { root: quarter, follows_caller: true }
    );
}

#[test]
fn invalid_settings_are_reported_without_secrets() {
    for (variables, named) in [
        (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")][..], "OTEL_EXPORTER_OTLP_ENDPOINT"),
        (&[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], "OTEL_EXPORTER_OTLP_PROTOCOL"),
        (&[ENDPOINT, ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon")], "OTEL_EXPORTER_OTLP_TIMEOUT"),
        (&[ENDPOINT, (QUEUE, "0")], QUEUE),
        (&[(EXPORTER, "zipkin")], EXPORTER),
        (&[(SAMPLER, "sometimes")], SAMPLER),
        (&[(SAMPLER, "traceidratio"), (SAMPLER_ARGUMENT, "2")], SAMPLER_ARGUMENT),
    ] {
        let message = refused(variables);
        assert!(message.contains(named), "{message}");
    }
    for headers in ["hunter2", "a=b,hunter2", "a=%zzhunter2", "a=%", "a=%+5", "=hunter2", "a=%ff"] {
        let message = refused(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_HEADERS", headers)]);
        assert!(message.contains("OTEL_EXPORTER_OTLP_HEADERS"), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
}
