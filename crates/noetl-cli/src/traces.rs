//! Configures the export of traces from settings with the standard OpenTelemetry variables.

use std::borrow::Cow;

use noetl_config::tree;
use noetl_journal::Traces;
use noetl_model::trace::{Ratio, RootSampling, Sampler};
use noetl_otlp::{ExporterSettings, ExporterTask};
use percent_encoding::percent_decode_str;

use crate::error::{CliError, ErrorKind};
use crate::settings;

const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const EXPORTER: &str = "OTEL_TRACES_EXPORTER";
const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
const SAMPLER_ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";
const RESOURCE: &str = "OTEL_RESOURCE_ATTRIBUTES";
/// Default endpoint of a collector on this machine.
const USUAL: &str = "http://localhost:4318";

/// Opens the configured exporter. Without one, trace contexts are only
/// propagated.
pub(crate) fn open() -> Result<(Traces, Option<ExporterTask>), CliError> {
    let exporter = TraceExport::configured(settings::current())?;
    let sampler = exporter.sampler()?;
    let Some(settings) = exporter.settings()? else {
        return Ok((Traces::passed_on(sampler), None));
    };
    let (sink, exporter) = noetl_otlp::open(settings).map_err(|error| {
        CliError::from_error(ErrorKind::Config, &error)
            .hint("see OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS")
    })?;
    Ok((Traces::recorded(sink, sampler), Some(exporter)))
}

/// Settings of the export, with the names under which they were set.
pub(crate) struct TraceExport<'a> {
    traces: tree::Traces,
    settings: &'a noetl_config::Settings,
}

impl<'a> TraceExport<'a> {
    pub(crate) fn configured(settings: &'a noetl_config::Settings) -> Result<Self, CliError> {
        Ok(Self { traces: settings::decode(settings)?, settings })
    }

    /// Returns the settings of the exporter, or `None` if no endpoint is configured.
    pub(crate) fn settings(&self) -> Result<Option<ExporterSettings>, CliError> {
        let traces = &self.traces;
        let is_asked = match text(&traces.exporter) {
            Some("none") => return Ok(None),
            Some("otlp") => true,
            None => false,
            Some(other) => {
                return Err(self.wrong(EXPORTER, &format!("is otlp or none, not '{other}'")));
            }
        };
        let endpoint = self.endpoint(is_asked)?;
        let Some(endpoint) = endpoint.filter(|_| !traces.disabled) else { return Ok(None) };
        if let Some(protocol) = text(&traces.protocol)
            && protocol != "http/protobuf"
        {
            let hint = "collectors take it at port 4318, beside grpc at 4317";
            let why = format!("is http/protobuf, not '{protocol}'");
            return Err(self.wrong(PROTOCOL, &why).hint(hint));
        }
        let headers = match &traces.headers {
            Some(headers) => self.pairs(HEADERS, headers.expose())?,
            None => Vec::new(),
        };
        Ok(Some(ExporterSettings {
            headers,
            timeout: traces.timeout_ms,
            resource: self.resource()?,
            queue: traces.queue,
            batch: traces.batch.min(traces.queue),
            delay: traces.delay_ms,
            ..ExporterSettings::new(endpoint)
        }))
    }

    /// Returns the endpoint for traces: the specific one as is, or that of the collector with
    /// `/v1/traces`.
    fn endpoint(&self, is_asked: bool) -> Result<Option<String>, CliError> {
        let (traces, usual) = (&self.traces, USUAL);
        let (variable, url, suffix) = match (text(&traces.traces_endpoint), text(&traces.endpoint))
        {
            (Some(own), _) => ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", own, ""),
            (None, Some(address)) => ("OTEL_EXPORTER_OTLP_ENDPOINT", address, "/v1/traces"),
            (None, None) if is_asked => (EXPORTER, usual, "/v1/traces"),
            (None, None) => return Ok(None),
        };
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            // The value may contain a password.
            return Err(self.wrong(variable, &format!("is not an address such as {USUAL}")));
        }
        let url = if suffix.is_empty() { url } else { url.trim_end_matches('/') };
        Ok(Some(format!("{url}{suffix}")))
    }

    /// Returns the resource attributes of this process.
    fn resource(&self) -> Result<Vec<(String, String)>, CliError> {
        let mut resource = match text(&self.traces.resource_attributes) {
            Some(text) => self.pairs(RESOURCE, text)?,
            None => Vec::new(),
        };
        let is_name = |(name, _): &(String, String)| name == "service.name";
        let name = text(&self.traces.service_name);
        if name.is_some() {
            resource.retain(|pair| !is_name(pair));
        }
        if !resource.iter().any(is_name) {
            let name = name.unwrap_or("noetl").to_owned();
            resource.push(("service.name".to_owned(), name));
        }
        if !resource.iter().any(|(name, _)| name == "service.version") {
            let version = env!("CARGO_PKG_VERSION").to_owned();
            resource.push(("service.version".to_owned(), version));
        }
        Ok(resource)
    }

    pub(crate) fn sampler(&self) -> Result<Sampler, CliError> {
        let Some(name) = text(&self.traces.sampler) else { return Ok(Sampler::default()) };
        let (of, follows_caller) = match name.strip_prefix("parentbased_") {
            Some(of) => (of, true),
            None => (name, false),
        };
        let root = match of {
            "always_on" => RootSampling::All,
            "always_off" => RootSampling::None,
            "traceidratio" => RootSampling::Share(self.share()?),
            _ => {
                let why = format!(
                    "is always_on, always_off or traceidratio, or one of them after parentbased_, \
                     not '{name}'"
                );
                return Err(self.wrong(SAMPLER, &why));
            }
        };
        Ok(Sampler { root, follows_caller })
    }

    fn share(&self) -> Result<Ratio, CliError> {
        let text = match self.traces.sampler_arg.trim() {
            "" => "1",
            text => text,
        };
        let share = text.parse().ok().and_then(Ratio::new);
        let why = || format!("is a number from 0 to 1, not '{text}'");
        share.ok_or_else(|| self.wrong(SAMPLER_ARGUMENT, &why()))
    }

    /// Parses comma-separated `name=value` pairs with percent-encoded values. An error omits the
    /// values, because one may be a token.
    fn pairs(&self, variable: &str, text: &str) -> Result<Vec<(String, String)>, CliError> {
        let members = text.split(',').map(str::trim).filter(|member| !member.is_empty());
        let pairs = members.enumerate().map(|(index, member)| {
            let pair = member.split_once('=').and_then(|(name, value)| {
                let name = Some(name.trim().to_owned()).filter(|name| !name.is_empty())?;
                Some((name, decoded(value.trim())?))
            });
            pair.ok_or_else(|| {
                let name = self.settings.name_of(variable);
                let message = format!("{name}: entry {} is not as name=value", index + 1);
                CliError::new(ErrorKind::Config, message)
                    .hint("parts are separated by commas; a comma in a value is written %2C")
            })
        });
        pairs.collect()
    }

    fn wrong(&self, variable: &str, why: &str) -> CliError {
        let name = self.settings.name_of(variable);
        CliError::new(ErrorKind::Config, format!("{name} {why}"))
    }
}

/// Returns a value without surrounding blanks, or `None` if nothing remains.
fn text(value: &Option<String>) -> Option<&str> {
    value.as_deref().map(str::trim).filter(|text| !text.is_empty())
}

/// Decodes percent-encoded text, or returns `None` if it is invalid.
fn decoded(text: &str) -> Option<String> {
    // `percent_decode_str` passes on a `%` without two digits.
    let is_code = |rest: &[u8]| rest.len() >= 2 && rest[..2].iter().all(u8::is_ascii_hexdigit);
    if !text.split('%').skip(1).all(|rest| is_code(rest.as_bytes())) {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests;
