//! Tools of the released worker, reduced to what the examples use.

use std::process::Stdio;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::control_plane::ControlPlane;
use super::render::render;
use super::{error_text, python};

/// Context of a tool run.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) server: ControlPlane,
    pub(super) execution: i64,
    pub(super) names: Map<String, Value>,
}

/// Outcome of a tool that ran. A tool that fails to start returns an error instead.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolOutcome {
    pub(super) status: &'static str,
    pub(super) data: Value,
    pub(super) error: Option<String>,
    pub(super) stdout: Option<String>,
    pub(super) stderr: Option<String>,
    pub(super) exit_code: Option<i32>,
}

impl ToolOutcome {
    fn success(data: Value) -> Self {
        Self { status: "success", data, ..Self::default() }
    }

    /// Converts the outcome to JSON without absent fields.
    pub(super) fn to_json(&self) -> Value {
        let mut made = Map::new();
        made.insert("status".to_owned(), self.status.into());
        let mut add = |name: &str, value: Value| {
            if !value.is_null() {
                made.insert(name.to_owned(), value);
            }
        };
        add("data", self.data.clone());
        add("error", self.error.clone().into());
        add("stdout", self.stdout.clone().into());
        add("stderr", self.stderr.clone().into());
        add("exit_code", self.exit_code.into());
        add("duration_ms", 1.into());
        Value::Object(made)
    }
}

/// Renders the configuration once more and runs one tool.
pub(super) async fn run(
    kind: &str,
    config: &Value,
    context: &Context,
) -> Result<ToolOutcome, String> {
    let config = resolve_credential(config, context).await?;
    let config = render(&config, &context.names)?;
    if config.get("timeout").is_some_and(|timeout| !timeout.is_u64()) {
        return Err("malformed tool config: timeout".to_owned());
    }
    match kind {
        "noop" => Ok(ToolOutcome::success(noop(&config))),
        "shell" => shell(&config).await,
        "http" => http(&config, context).await,
        "python" => python(&config, context).await,
        other => Err(format!("Tool not found: {other}")),
    }
}

fn noop(config: &Value) -> Value {
    match (config.get("result"), config.get("message")) {
        (Some(result), _) => result.clone(),
        (None, message) => {
            json!({"status": "ok", "message": message.cloned().unwrap_or_else(|| "noop".into())})
        }
    }
}

/// Returns the configuration with the credential that its alias names.
async fn resolve_credential(config: &Value, context: &Context) -> Result<Value, String> {
    let alias = ["auth", "credential"].iter().find_map(|key| config.get(*key));
    let Some(alias) = alias.and_then(Value::as_str) else { return Ok(config.clone()) };
    let (kind, data) = context.server.credential(alias, context.execution).await?;
    let field = |names: &[&str]| names.iter().find_map(|name| data.get(*name)).cloned();
    let auth = match kind.as_str() {
        "bearer" | "bearer_token" => {
            json!({"type": "bearer", "token": field(&["token", "access_token", "bearer_token"])})
        }
        "basic" => json!({
            "type": "basic", "username": field(&["username", "user"]),
            "password": field(&["password", "db_password"]),
        }),
        other => return Err(format!("unsupported credential type: {other}")),
    };
    let mut config = config.clone();
    if let Value::Object(map) = &mut config {
        map.remove("credential");
        map.insert("auth".to_owned(), auth);
    }
    Ok(config)
}

fn limit(config: &Value) -> Duration {
    let seconds = config.get("timeout_seconds").and_then(Value::as_u64);
    Duration::from_secs(seconds.unwrap_or(3600))
}

fn text<'v>(config: &'v Value, name: &str) -> Result<&'v str, String> {
    config.get(name).and_then(Value::as_str).ok_or_else(|| format!("config: {name} is missing"))
}

/// Returns a map of texts. Converts numbers and booleans, and drops nulls.
fn texts(config: &Value, name: &str) -> Result<Vec<(String, String)>, String> {
    let map = config.get(name).and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| match value {
            Value::String(text) => Ok((key.clone(), text.clone())),
            Value::Number(_) | Value::Bool(_) => Ok((key.clone(), value.to_string())),
            _ => Err(format!("config: {name}.{key} is no text")),
        })
        .collect()
}

async fn shell(config: &Value) -> Result<ToolOutcome, String> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(text(config, "command")?);
    for (name, value) in config.get("env").and_then(Value::as_object).into_iter().flatten() {
        command.env(name, value.as_str().ok_or_else(|| format!("config: env.{name} is no text"))?);
    }
    let ran = process(command, None, limit(config)).await?;
    let Some((code, stdout, stderr)) = ran else { return Ok(timed_out(config)) };
    let [stdout, stderr] = [stdout, stderr].map(|text| by_lines(&text));
    let data = json!({"exit_code": code, "stdout": stdout, "stderr": stderr});
    Ok(ToolOutcome {
        status: if code == 0 { "success" } else { "error" },
        error: (code != 0).then(|| format!("Command exited with code {code}")),
        data,
        stdout: Some(stdout),
        stderr: Some(stderr),
        exit_code: Some(code),
    })
}

/// Returns a text as the released worker reads it: line by line, each with a newline.
fn by_lines(text: &str) -> String {
    text.lines().map(|line| format!("{line}\n")).collect()
}

fn timed_out(config: &Value) -> ToolOutcome {
    let seconds = limit(config).as_secs();
    ToolOutcome {
        status: "timeout",
        error: Some(format!("Execution timed out after {seconds} seconds")),
        ..ToolOutcome::default()
    }
}

async fn process(
    mut command: Command,
    input: Option<Vec<u8>>,
    limit: Duration,
) -> Result<Option<(i32, String, String)>, String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(error_text)?;
    let stdin = child.stdin.take();
    let fed = async {
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            // The program may end before it reads its input.
            let _ = stdin.write_all(&input).await;
        }
    };
    let ran = async { tokio::join!(fed, child.wait_with_output()).1 };
    let Ok(output) = tokio::time::timeout(limit, ran).await else { return Ok(None) };
    let output = output.map_err(error_text)?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let code = output.status.code().unwrap_or(-1);
    Ok(Some((code, text(output.stdout), text(output.stderr))))
}

async fn python(config: &Value, context: &Context) -> Result<ToolOutcome, String> {
    let mut command = Command::new("python3");
    command.arg("-c").arg(python::WRAPPER);
    for (name, value) in texts(config, "env")? {
        command.env(name, value);
    }
    let args = config.get("args").or_else(|| config.get("input"));
    let input = json!({
        "code": text(config, "code")?,
        "args": args.cloned().unwrap_or_else(|| json!({})),
        "variables": context.names,
        "execution_id": context.execution,
        "step": context.names.get("step"),
    });
    let ran = process(command, Some(input.to_string().into_bytes()), limit(config)).await?;
    let Some((code, stdout, stderr)) = ran else { return Ok(timed_out(config)) };
    let (stdout, result) = python::split(&stdout);
    let printed = json!({"stdout": stdout, "stderr": stderr});
    Ok(ToolOutcome {
        status: if code == 0 { "success" } else { "error" },
        error: (code != 0).then(|| format!("Python script exited with code {code}")),
        data: result.filter(|result| code == 0 && !result.is_null()).unwrap_or(printed),
        stdout: Some(stdout),
        stderr: Some(stderr),
        exit_code: Some(code),
    })
}

async fn http(config: &Value, context: &Context) -> Result<ToolOutcome, String> {
    let method = config.get("method").and_then(Value::as_str).unwrap_or("GET");
    let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    if !known.contains(&method) {
        return Err(format!("config: unknown method {method}"));
    }
    let method: Method = method.parse().map_err(error_text)?;
    let mut request = context.server.client().request(method, text(config, "url")?);
    for (name, value) in texts(config, "headers")? {
        request = request.header(name, value);
    }
    request = request.query(&texts(config, "params")?).timeout(limit(config));
    if let Some(json) = config.get("json") {
        request = request.json(json);
    } else if config.get("form").is_some() {
        request = request.form(&texts(config, "form")?);
    } else if let Some(body) = config.get("body") {
        request = request.body(body.as_str().map_or_else(|| body.to_string(), str::to_owned));
    }
    let auth = config.get("auth").cloned().unwrap_or_default();
    let field = |name: &str| auth.get(name).and_then(Value::as_str).map(str::to_owned);
    match auth.get("type").and_then(Value::as_str) {
        Some("bearer") => request = request.bearer_auth(field("token").unwrap_or_default()),
        Some("basic") => {
            let user = field("username").unwrap_or_default();
            request = request.basic_auth(user, field("password"));
        }
        _ => {}
    }
    let response = request.send().await.map_err(|error| format!("HTTP error: {error}"))?;
    let status = response.status();
    let headers: Map<String, Value> = response
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().into()))
        .collect();
    let body = response.text().await.map_err(error_text)?;
    let data: Value = serde_json::from_str(&body).unwrap_or_else(|_| body.clone().into());
    Ok(ToolOutcome {
        status: if status.is_success() { "success" } else { "error" },
        error: (!status.is_success()).then(|| format!("HTTP {} response", status.as_u16())),
        data: json!({
            "status_code": status.as_u16(), "headers": headers, "data": data, "body": data,
        }),
        stdout: Some(body),
        exit_code: Some(i32::from(!status.is_success())),
        ..ToolOutcome::default()
    })
}
