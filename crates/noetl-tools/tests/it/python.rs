use noetl_model::{Failure, FailureKind, Value};
use noetl_tools::{Options, ToolRegistry};
use serde_json::json;

use crate::harness::{call, detail, map, registry, run};

async fn python(code: &str) -> Result<Value, Failure> {
    run("python", json!({"code": code})).await
}

/// Runs several programs with the same input, each against what it should answer.
async fn check(input: Value, cases: &[(&str, Value)]) {
    let tools = registry();
    for (code, expected) in cases {
        let mut step = call(json!({"code": code}));
        step.input = map(input.clone());
        let answer = tools.run("python", step).await;
        assert_eq!(answer.as_ref(), Ok(expected), "{code}");
    }
}

#[tokio::test]
async fn a_result_is_read_from_a_variable_a_function_or_a_return() {
    let nothing = json!({"stdout": "", "stderr": ""});
    check(
        json!({"a": 2, "b": [1], "not-a-name": 3}),
        &[
            ("result = a + 1", json!(3)),
            ("result = None", json!(null)),
            ("def main(a): return a * 2", json!(4)),
            ("def main(b, missing=5): return b + [missing]", json!([1, 5])),
            ("def main(**kw): return sorted(kw)", json!(["a", "b", "not-a-name"])),
            ("def main(a, /, *rest, b): return [a, rest, b]", json!([2, [], [1]])),
            ("def main(input_data, context): return [input_data['a'], context['step']]", json!([2, "load"])),
            ("async def main(a):\n  import asyncio\n  await asyncio.sleep(0)\n  return a", json!(2)),
            ("main = lambda: 7", json!(7)),
            ("def main(): return 1\nresult = 2", json!(2)),
            ("return a", json!(2)),
            ("a = a + 1\nif a > 2:\n    return {'a': a}\nreturn 0", json!({"a": 3})),
            ("from __future__ import annotations\nx: Foo = json.dumps([])\nimport json\nreturn x", json!("[]")),
            ("if a > 100:\n    return 1\nresult = 'fell through'", json!("fell through")),
            ("return", json!(null)),
            ("import sys\nresult = 1\nsys.exit(0)\nresult = 2", json!(1)),
            ("", nothing.clone()),
            ("# nothing\n", nothing.clone()),
            ("import sys\nprint('grün')\nprint('x', file=sys.stderr)", json!({"stdout": "grün\n", "stderr": "x\n"})),
            ("import subprocess\nsubprocess.run(['echo', 'hi'])", json!({"stdout": "hi\n", "stderr": ""})),
            ("result = __name__", json!("__main__")),
        ],
    )
    .await;
}

#[tokio::test]
async fn inputs_are_globals_and_context_names_the_step() {
    let context = json!({
        "earlier": {"rows": 1}, "execution_id": 7, "command_id": 8, "step": "load", "attempt": 1,
        "args": {"name": "grün", "result": 5},
    });
    let mut step = call(json!({
        "code": "def main(result): return [name, result, input_data, context, A]\nA = os.environ['A']",
        "context": {"earlier": {"rows": 1}},
        "env": {"A": "b"},
    }));
    step.input = map(json!({"name": "grün", "result": 5}));
    let answer = registry().run("python", step).await;
    let input = json!({"name": "grün", "result": 5});
    assert_eq!(answer, Ok(json!(["grün", 5, input, context, "b"])));
    check(
        json!({"input_data": [1], "context": 2, "__builtins__": {}}),
        &[("result = [input_data, context, len('ab')]", json!([[1], 2, 2]))],
    )
    .await;
}

#[tokio::test]
async fn results_that_are_not_json_are_converted_without_loss() {
    check(
        json!({}),
        &[
            ("result = datetime.datetime(2024, 1, 2, 3, 4, 5)", json!("2024-01-02T03:04:05")),
            ("result = {'d': datetime.date(2024, 1, 2)}", json!({"d": "2024-01-02"})),
            ("from decimal import Decimal as D\nresult = [D('0.1'), D('2.0'), D('0.12345678901234567890'), D('1e400')]",
                json!([0.1, 2, "0.12345678901234567890", "1E+400"])),
            ("result = b'ab'", json!("YWI=")),
            ("result = ({3, 1, 2}, (1,))", json!([[1, 2, 3], [1]])),
            ("result = {1: 'a', None: 'b', True: 'c', (1, 2): 'd'}", json!({"1": "c", "null": "b", "(1, 2)": "d"})),
            ("result = [2**63, 2**64, -2**63, 10**30]", json!([9_223_372_036_854_775_808_u64, "18446744073709551616", i64::MIN, "1000000000000000000000000000000"])),
            ("import uuid\nresult = uuid.UUID(int=1)", json!("00000000-0000-0000-0000-000000000001")),
            ("result = '\\ud800 x'", json!("? x")),
            ("result = 1e308", json!(1e308)),
        ],
    )
    .await;
}

#[tokio::test]
async fn hostile_results_are_rejected_with_a_reason() {
    let tools = registry();
    for (code, kind, message) in [
        (
            "result = {'a': [1, float('nan')]}",
            FailureKind::Schema,
            "result['a'][1] is nan, which JSON cannot carry; return None",
        ),
        (
            "result = float('-inf')",
            FailureKind::Schema,
            "result is -inf, which JSON cannot carry; return None",
        ),
        (
            "result = []\nresult.append(result)",
            FailureKind::Schema,
            "the result nests more than 100 levels deep or contains itself",
        ),
        (
            "result = []\nfor _ in range(100000): result = [result]",
            FailureKind::Schema,
            "the result nests more than 100 levels deep or contains itself",
        ),
        (
            "result = []\nfor _ in range(110): result = [result]",
            FailureKind::Schema,
            "the result nests more than 100 levels deep",
        ),
        (
            "result = 10 ** 10000",
            FailureKind::Schema,
            "result is an integer of 33220 bits, too long to print",
        ),
        (
            "result = 'x' * 3000000",
            FailureKind::OutputLimit,
            "the result is 3000002 bytes as JSON, more than the 2097152 a step may return; write large data to a file or a table and return where it is",
        ),
        (
            "class A:\n  def __str__(self): return 1 / 0\nresult = A()",
            FailureKind::Unknown,
            "ZeroDivisionError: division by zero (line 2)",
        ),
    ] {
        let failure = tools.run("python", call(json!({"code": code}))).await.unwrap_err();
        assert_eq!((failure.kind, failure.message.as_str()), (kind, message), "{code}");
    }
}

#[tokio::test]
async fn exceptions_have_a_kind_and_the_authors_line() {
    let tools = registry();
    for (code, kind, message) in [
        ("\nx = 1 / 0", FailureKind::Unknown, "ZeroDivisionError: division by zero (line 2)"),
        (
            "import json\njson.loads('{')",
            FailureKind::Parse,
            "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1) (line 2)",
        ),
        ("{}['a']", FailureKind::Schema, "KeyError: 'a' (line 1)"),
        ("[][1]", FailureKind::Schema, "IndexError: list index out of range (line 1)"),
        (
            "int('x')",
            FailureKind::Schema,
            "ValueError: invalid literal for int() with base 10: 'x' (line 1)",
        ),
        (
            "def main(a): pass",
            FailureKind::Schema,
            "TypeError: main() missing 1 required positional argument: 'a'",
        ),
        (
            "def f():\n  raise OSError('no')\ndef main():\n  f()",
            FailureKind::Unknown,
            "OSError: no (line 2)",
        ),
        ("x = 1\nx =", FailureKind::Config, "SyntaxError: invalid syntax (line 2)"),
        ("return (\n1 / 0)", FailureKind::Unknown, "ZeroDivisionError: division by zero (line 2)"),
        (
            "def f(): f()\nf()",
            FailureKind::Unknown,
            "RecursionError: maximum recursion depth exceeded (line 1)",
        ),
        (
            "raise Exception('x' * 9000)",
            FailureKind::Unknown,
            &format!("Exception: {}... (line 1)", "x".repeat(1989)),
        ),
        (
            "class E(Exception):\n  def __str__(self): raise self\nraise E()",
            FailureKind::Unknown,
            "E: (cannot be printed) (line 3)",
        ),
        (
            "import nope_not_there",
            FailureKind::Unknown,
            "ModuleNotFoundError: No module named 'nope_not_there' (line 1)",
        ),
        ("import sys\nsys.exit(3)", FailureKind::ExitCode, "SystemExit: 3 (line 2)"),
        ("import sys\nsys.exit('bad')", FailureKind::ExitCode, "SystemExit: bad (line 2)"),
    ] {
        let failure = tools.run("python", call(json!({"code": code}))).await.unwrap_err();
        assert_eq!((failure.kind, failure.message.as_str()), (kind, message), "{code}");
    }
}

#[tokio::test]
async fn a_failure_shows_the_traceback_and_the_output() {
    let failure =
        python("print('before')\ndef f():\n    raise KeyError('k')\nf()").await.unwrap_err();
    let traceback = detail(&failure, "traceback");
    let traceback = traceback.as_str().unwrap();
    assert!(traceback.contains("File \"<load>\", line 4, in <module>\n    f()"), "{traceback}");
    assert!(!traceback.contains("perform"), "{traceback}");
    assert_eq!(detail(&failure, "exception_type"), "KeyError");
    assert_eq!(detail(&failure, "line"), 3);
    assert_eq!(detail(&failure, "stdout"), "before\n");
    let failure = python("import sys; sys.exit(300)").await.unwrap_err();
    assert_eq!(detail(&failure, "exit_code"), 44);
}

#[tokio::test]
async fn libs_bind_modules_and_names() {
    let code = "result = [p.join('a', 'b'), D('1').is_nan(), isinstance(datetime, type)]";
    let libs = json!({
        "p": "os.path",
        "D": {"from": "decimal", "import": "Decimal"},
        "datetime": {"from": "datetime", "import": "datetime"},
    });
    let answer = run("python", json!({"code": code, "libs": libs})).await;
    assert_eq!(answer, Ok(json!(["a/b", false, true])));

    let tools = registry();
    for (libs, kind, message) in [
        (
            json!({"x": "nope_nope"}),
            FailureKind::ToolMissing,
            "`libs.x`: No module named 'nope_nope'; install it for the worker's Python",
        ),
        (
            json!({"x": {"from": "os", "import": "nope"}}),
            FailureKind::Config,
            "`libs.x`: module 'os' has no 'nope'",
        ),
        (
            json!({"x": {"import": "nope"}}),
            FailureKind::Config,
            "`libs.x` must be a module's name or {from: module, import: name}",
        ),
        (
            json!(["nope-nope"]),
            FailureKind::Unknown,
            "ModuleNotFoundError: No module named 'nope_nope'; a list under `libs` installs nothing, install it for the worker's Python (line 1)",
        ),
    ] {
        let step = call(json!({"code": "import nope_nope", "libs": libs}));
        let failure = tools.run("python", step).await.unwrap_err();
        assert_eq!((failure.kind, failure.message.as_str()), (kind, message));
    }
}

#[tokio::test]
async fn a_missing_interpreter_fails_only_its_step() {
    let tools = |python: &str| {
        ToolRegistry::standard(Options { python: python.into(), ..Options::default() })
    };
    let absent = tools("python-not-there");
    let failure = absent.run("python", call(json!({"code": ""}))).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::ToolMissing);
    assert_eq!(failure.message, "python-not-there was not found; install it or set NOETL_PYTHON");
    assert!(absent.run("noop", call(json!({}))).await.is_ok());
    let failure = tools("false").run("python", call(json!({"code": ""}))).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::ToolMissing);
    let failure = tools("cat").run("python", call(json!({"code": ""}))).await.unwrap_err();
    assert!(failure.message.contains("as a Python 3 interpreter"), "{}", failure.message);
}

#[tokio::test]
async fn errors_name_the_invalid_setting() {
    for (config, message) in [
        (json!({}), "a python step needs its program under `code` or `script`"),
        (json!({"script": {}}), "`script.source` of type inline needs the program under `code`"),
        (json!({"code": 1}), "`code` must be a text, not a number"),
        (json!({"code": "", "libs": 1}), "`libs` must be a map, not a number"),
        (
            json!({"code": "", "limits": {"memory_mb": 0}}),
            "`limits.memory_mb` must be a positive whole number",
        ),
        (
            json!({"code": "", "limits": {"x": 1}}),
            "`limits` knows memory_mb, cpu_seconds and open_files, not 'x'",
        ),
    ] {
        let failure = run("python", config).await.unwrap_err();
        assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Config, message));
    }
}
