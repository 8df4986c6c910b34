//! Python wrapper of the released worker: reads its input as JSON and prints the result on a separate
//! line.

use serde_json::Value;

/// Prefix of the line with the result.
const PREFIX: &str = "__WORKER_RESULT__";

pub(super) const WRAPPER: &str = r#"
import asyncio, inspect, json, sys, textwrap
given = json.load(sys.stdin)
args = given["args"]
scope = {
    "args": args, "variables": given["variables"],
    "execution_id": given["execution_id"], "step": given["step"],
    "context": {key: given[key] for key in given if key != "code"},
}
scope.update(args)
scope["input_data"] = dict(args)
code = given["code"]
returns = False
for line in code.splitlines():
    if line.startswith(("def ", "class ", "async def ")):
        break
    if line.startswith("return"):
        returns = True
        break
if returns:
    code = "def __returned():\n" + textwrap.indent(code, "    ") + "\nresult = __returned()\n"
exec(compile(code, "<step>", "exec"), scope)
result = scope.get("result")
main = scope.get("main")
if result is None and callable(main):
    names = inspect.signature(main).parameters
    result = main(**{name: args[name] for name in names if name in args})
    if inspect.iscoroutine(result):
        result = asyncio.run(result)
sys.stdout.write("\n__WORKER_RESULT__" + json.dumps(result, default=str) + "\n")
"#;

/// Splits the output into printed text and the result.
pub(super) fn split(stdout: &str) -> (String, Option<Value>) {
    match stdout.rsplit_once(&format!("\n{PREFIX}")) {
        Some((printed, result)) => (printed.to_owned(), serde_json::from_str(result.trim()).ok()),
        None => (stdout.to_owned(), None),
    }
}
