//! Converts a worker's report about a command to an input of the engine.

use noetl_compat::{decode_failure, decode_result};
use noetl_engine::{Complete, Fail, Input};
use noetl_model::event::{CommandSpec, ToolRun};
use noetl_model::{CommandId, Failure, FailureKind, Map, Timestamp, Value};
use noetl_store::{LogStream, NewLine};

use super::EventReport;

/// Returns the input for `call.done`: the result. `command.completed` then ends the command.
pub(super) fn answered(
    command: CommandId,
    payload: Option<&Value>,
    issued: Option<&CommandSpec>,
) -> Input {
    let result = payload.and_then(|payload| payload.get("result"));
    let context = result.and_then(|result| result.get("context"));
    let status = result.and_then(|result| result.get("status")).and_then(Value::as_str);
    if matches!(status, Some("error" | "timeout")) {
        return Input::Fail(Fail {
            command,
            failure: match published(context) {
                Some(answer) => decode_failure(answer),
                None => failure_in(context.or(result)),
            },
            ctx: Map::new(),
            step: Map::new(),
        });
    }
    let data = context
        .and_then(|context| context.get("data"))
        .or(context)
        .or(result)
        .cloned()
        .unwrap_or(Value::Null);
    let (data, Updates { ctx, step }) = without_updates(data);
    let data = match (issued, published(context)) {
        (Some(issued), Some(_)) => decode_result(issued, data),
        _ => data,
    };
    let (data, run) = (Some(data), run_in(context));
    Input::Complete(Complete { command, data, reference: None, is_final: false, ctx, step, run })
}

/// Returns the exit code and duration of a tool run, from the response of a published worker.
fn run_in(context: Option<&Value>) -> Option<Box<ToolRun>> {
    let answer = published(context)?;
    let run = ToolRun {
        exit_code: answer.get("exit_code").and_then(Value::as_i64),
        duration_ms: answer.get("duration_ms").and_then(Value::as_u64),
    };
    (run != ToolRun::default()).then(|| Box::new(run))
}

/// Returns the output of a step, from the response of a published worker; other workers send lines
/// while the step runs. A published `http` tool puts the response body there, which is not output.
pub(super) fn printed_in(
    command: CommandId,
    at: Timestamp,
    report: &EventReport,
    issued: Option<&CommandSpec>,
) -> Vec<NewLine> {
    let result = report.payload.as_ref().and_then(|payload| payload.get("result"));
    let Some(answer) = published(result.and_then(|result| result.get("context"))) else {
        return Vec::new();
    };
    if issued.is_none_or(|issued| &*issued.tool == "http") {
        return Vec::new();
    }
    let line = |(name, stream): (&str, LogStream)| {
        let text = answer.get(name)?.as_str().filter(|text| !text.is_empty())?.to_owned();
        Some(NewLine { command, at, stream, text })
    };
    let streams = [("stdout", LogStream::Out), ("stderr", LogStream::Err)];
    streams.into_iter().filter_map(line).collect()
}

/// Returns a tool's response if it has the form of published workers: with its own status.
fn published(context: Option<&Value>) -> Option<&Map> {
    let answer = context?.as_object()?;
    answer.get("status").is_some_and(Value::is_string).then_some(answer)
}

/// Variables set by the tasks of a pipeline.
#[derive(Default)]
struct Updates {
    ctx: Map,
    step: Map,
}

/// Separates a pipeline's data from the variables its tasks set, which a published worker puts into
/// the data. Variables of an iteration are dropped: only its tasks use them.
fn without_updates(mut data: Value) -> (Value, Updates) {
    let mut split = Updates::default();
    let updates = data.as_object_mut().and_then(|map| map.remove("_context_updates"));
    let Some(Value::Object(updates)) = updates else { return (data, split) };
    for (name, value) in updates {
        match name.split_once('.') {
            Some(("step", path)) => split.step.insert(path.to_owned(), value),
            Some(("iter", _)) => None,
            Some(("ctx", path)) => split.ctx.insert(path.to_owned(), value),
            _ => split.ctx.insert(name, value),
        };
    }
    (data, split)
}

/// Returns the input for `command.completed`. A tool that returned an error failed, whatever the
/// event type.
pub(super) fn ended(command: CommandId, report: &EventReport) -> Input {
    let said = report.payload.as_ref().and_then(|payload| payload.get("status"));
    let status = said.and_then(Value::as_str).or(report.status.as_deref());
    if status.is_some_and(|status| status.eq_ignore_ascii_case("error")) {
        return Input::Fail(Fail {
            command,
            failure: failure_in(report.payload.as_ref()),
            ctx: Map::new(),
            step: Map::new(),
        });
    }
    Input::Complete(Complete {
        command,
        data: None,
        reference: None,
        is_final: true,
        ctx: Map::new(),
        step: Map::new(),
        run: None,
    })
}

pub(super) fn failure_in(said: Option<&Value>) -> Failure {
    let error = said.and_then(|said| said.get("error")).or(said);
    let message = match error {
        Some(Value::String(text)) => text.clone(),
        Some(other) => {
            let text = other.get("message").and_then(Value::as_str).map(str::to_owned);
            text.unwrap_or_else(|| other.to_string())
        }
        None => "the worker reported a failure without a reason".to_owned(),
    };
    let kind = error.and_then(|error| error.get("kind")).and_then(Value::as_str);
    let kind = kind.map_or(FailureKind::Unknown, |kind| FailureKind::from(kind.to_owned()));
    let failure = Failure::new(kind, message);
    match said {
        Some(details @ Value::Object(_)) => failure.with_details(details.clone()),
        _ => failure,
    }
}
