//! Configures the export of traces from the standard OpenTelemetry variables.

use std::ops::RangeInclusive;
use std::time::Duration;

use noetl_journal::Traces;
use noetl_model::trace::{Ratio, RootSampling, Sampler};
use noetl_otlp::{ExporterTask, Settings};

use crate::error::{CliError, ErrorKind};
use crate::settings::setting;

const DISABLED: &str = "OTEL_SDK_DISABLED";
const EXPORTER: &str = "OTEL_TRACES_EXPORTER";
const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
const SAMPLER_ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
const RESOURCE: &str = "OTEL_RESOURCE_ATTRIBUTES";
const QUEUE: &str = "OTEL_BSP_MAX_QUEUE_SIZE";
const BATCH: &str = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE";
const DELAY: &str = "OTEL_BSP_SCHEDULE_DELAY";

/// Default endpoint of a collector on this machine.
const USUAL: &str = "http://localhost:4318";

/// Opens the exporter that the environment configures. Without one, trace contexts are only
/// propagated.
pub(crate) fn open() -> Result<(Traces, Option<ExporterTask>), CliError> {
    let environment = Environment { read: &setting };
    let sampler = environment.sampler()?;
    let Some(settings) = environment.settings()? else {
        return Ok((Traces::passed_on(sampler), None));
    };
    let (sink, exporter) = noetl_otlp::open(settings).map_err(|error| {
        CliError::from_error(ErrorKind::Config, &error)
            .hint("see OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS")
    })?;
    Ok((Traces::recorded(sink, sampler), Some(exporter)))
}

/// Source of environment variables; tests replace it.
struct Environment<'a> {
    read: &'a dyn Fn(&str) -> Option<String>,
}

impl Environment<'_> {
    fn text(&self, name: &str) -> Option<String> {
        let text = (self.read)(name)?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// Returns the variable specific to traces, else the one for all signals, with its name.
    fn otlp(&self, what: &str) -> Option<(String, String)> {
        [format!("OTEL_EXPORTER_OTLP_TRACES_{what}"), format!("OTEL_EXPORTER_OTLP_{what}")]
            .into_iter()
            .find_map(|name| self.text(&name).map(|text| (name, text)))
    }

    fn number(&self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, CliError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        number(name, &text, range).map(Some)
    }

    /// Returns the settings of the exporter, or `None` if no endpoint is configured.
    fn settings(&self) -> Result<Option<Settings>, CliError> {
        let is_disabled = self.text(DISABLED).is_some_and(|text| text.eq_ignore_ascii_case("true"));
        let is_asked = match self.text(EXPORTER).as_deref() {
            Some("none") => return Ok(None),
            Some("otlp") => true,
            None => false,
            Some(other) => {
                return Err(wrong(format!("{EXPORTER} is otlp or none, not '{other}'")));
            }
        };
        let endpoint = self.endpoint(is_asked)?;
        let Some(endpoint) = endpoint.filter(|_| !is_disabled) else { return Ok(None) };
        if let Some((name, protocol)) = self.otlp("PROTOCOL")
            && protocol != "http/protobuf"
        {
            let message = format!("{name} is http/protobuf, not '{protocol}'");
            let hint = "collectors take it at port 4318, beside grpc at 4317";
            return Err(wrong(message).hint(hint));
        }
        let defaults = Settings::new(endpoint);
        let timeout = match self.otlp("TIMEOUT") {
            Some((name, text)) => Duration::from_millis(number(&name, &text, 1..=600_000)?),
            None => defaults.timeout,
        };
        let headers = match self.otlp("HEADERS") {
            Some((name, text)) => pairs(&name, &text)?,
            None => Vec::new(),
        };
        let queue = self.number(QUEUE, 1..=1_000_000)?.and_then(|n| usize::try_from(n).ok());
        let queue = queue.unwrap_or(defaults.queue);
        let batch = self.number(BATCH, 1..=1_000_000)?.and_then(|n| usize::try_from(n).ok());
        let delay = self.number(DELAY, 0..=600_000)?.map(Duration::from_millis);
        Ok(Some(Settings {
            headers,
            timeout,
            resource: self.resource()?,
            queue,
            batch: batch.unwrap_or(defaults.batch).min(queue),
            delay: delay.unwrap_or(defaults.delay),
            ..defaults
        }))
    }

    /// Returns the endpoint for traces: the specific one as is, or that of the collector with
    /// `/v1/traces`.
    fn endpoint(&self, is_asked: bool) -> Result<Option<String>, CliError> {
        let own = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        let (name, said, suffix) = match (self.text(own), self.text("OTEL_EXPORTER_OTLP_ENDPOINT"))
        {
            (Some(own_address), _) => (own, own_address, ""),
            (None, Some(address)) => ("OTEL_EXPORTER_OTLP_ENDPOINT", address, "/v1/traces"),
            (None, None) if is_asked => (EXPORTER, USUAL.to_owned(), "/v1/traces"),
            (None, None) => return Ok(None),
        };
        if !(said.starts_with("http://") || said.starts_with("https://")) {
            let message = format!("{name} is an address as {USUAL}, not '{said}'");
            return Err(wrong(message));
        }
        let said = if suffix.is_empty() { &said[..] } else { said.trim_end_matches('/') };
        Ok(Some(format!("{said}{suffix}")))
    }

    /// Returns the resource attributes of this process.
    fn resource(&self) -> Result<Vec<(String, String)>, CliError> {
        let mut resource = match self.text(RESOURCE) {
            Some(text) => pairs(RESOURCE, &text)?,
            None => Vec::new(),
        };
        let is_name = |(name, _): &(String, String)| name == "service.name";
        let name = self.text(SERVICE_NAME);
        if name.is_some() {
            resource.retain(|pair| !is_name(pair));
        }
        if !resource.iter().any(is_name) {
            let name = name.unwrap_or_else(|| "noetl".to_owned());
            resource.push(("service.name".to_owned(), name));
        }
        if !resource.iter().any(|(name, _)| name == "service.version") {
            let version = env!("CARGO_PKG_VERSION").to_owned();
            resource.push(("service.version".to_owned(), version));
        }
        Ok(resource)
    }

    fn sampler(&self) -> Result<Sampler, CliError> {
        let Some(name) = self.text(SAMPLER) else { return Ok(Sampler::default()) };
        let (of, follows_caller) = match name.strip_prefix("parentbased_") {
            Some(of) => (of, true),
            None => (name.as_str(), false),
        };
        let root = match of {
            "always_on" => RootSampling::All,
            "always_off" => RootSampling::None,
            "traceidratio" => RootSampling::Share(self.share()?),
            _ => {
                let message = format!(
                    "{SAMPLER} is always_on, always_off or traceidratio, or one of them after \
                     parentbased_, not '{name}'"
                );
                return Err(wrong(message));
            }
        };
        Ok(Sampler { root, follows_caller })
    }

    fn share(&self) -> Result<Ratio, CliError> {
        let text = self.text(SAMPLER_ARGUMENT).unwrap_or_else(|| "1".to_owned());
        let share = text.parse().ok().and_then(Ratio::new);
        share.ok_or_else(|| {
            wrong(format!("{SAMPLER_ARGUMENT} is a number from 0 to 1, not '{text}'"))
        })
    }
}

fn number(name: &str, text: &str, range: RangeInclusive<u64>) -> Result<u64, CliError> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        wrong(format!("{name} is a number from {least} to {most}, not '{text}'"))
    })
}

/// Parses comma-separated `name=value` pairs with percent-encoded values. An error omits the
/// values, because one may be a token.
fn pairs(variable: &str, text: &str) -> Result<Vec<(String, String)>, CliError> {
    let members = text.split(',').map(str::trim).filter(|member| !member.is_empty());
    members
        .enumerate()
        .map(|(place, member)| {
            let pair = member.split_once('=').and_then(|(name, value)| {
                let name = Some(name.trim().to_owned()).filter(|name| !name.is_empty())?;
                Some((name, decoded(value.trim())?))
            });
            pair.ok_or_else(|| {
                let place = place + 1;
                wrong(format!("{variable}: entry {place} is not as name=value"))
                    .hint("parts are separated by commas; a comma in a value is written %2C")
            })
        })
        .collect()
}

/// Decodes percent-encoded text, or returns `None` if it is invalid.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        let digits = std::str::from_utf8(&digits).ok().filter(|digits| !digits.starts_with('+'))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

fn wrong(message: String) -> CliError {
    CliError::new(ErrorKind::Config, message)
}

#[cfg(test)]
mod tests;
