//! Tests that Python steps don't affect each other.

use noetl_model::FailureKind;
use serde_json::json;

use crate::harness::{CapturedLog, call, detail, map, registry, run};

#[tokio::test]
async fn nothing_leaks_from_one_step_to_the_next() {
    let tools = registry();
    let spoil = "\
import json, sys, os, builtins, random
leaked = 1
builtins.leaked_too = 1
json.dumps = None
os.environ['LEAKED'] = '1'
sys.path.append('/leaked')
sys.modules['leaked'] = sys
open('leaked', 'w').close()
os.umask(0o777)
os.chdir('/')
sys.setrecursionlimit(50)
result = os.getpid()
";
    let look = "\
import sys, os, builtins
result = [
    'leaked' in globals(), hasattr(builtins, 'leaked_too'), json.dumps is None,
    'LEAKED' in os.environ, '/leaked' in sys.path, 'leaked' in sys.modules,
    os.listdir('.'), os.getcwd() == '/', sys.getrecursionlimit() < 100,
]
";
    let spoilt = tools.run("python", call(json!({"code": spoil}))).await.unwrap();
    assert!(spoilt.is_number());
    let seen = tools.run("python", call(json!({"code": look}))).await;
    assert_eq!(seen, Ok(json!([false, false, false, false, false, false, [], false, false])));
}

#[tokio::test]
async fn a_step_has_its_own_session_streams_and_randomness() {
    let code = "\
import sys, os, random
result = {
    'leads': os.getpid() == os.getsid(0) == os.getpgid(0),
    'stdin': sys.stdin.read(),
    'files': sorted(int(name) for name in os.listdir('/proc/self/fd'))[:3],
    'extra': len(os.listdir('/proc/self/fd')),
    'worker': os.environ.get('CARGO_MANIFEST_DIR'),
    'random': random.random(),
    'mode': oct(os.stat('.').st_mode & 0o777),
    'ppid': os.getppid(),
}
";
    let tools = registry();
    let first = tools.run("python", call(json!({"code": code}))).await.unwrap();
    let second = tools.run("python", call(json!({"code": code}))).await.unwrap();
    assert_eq!(first["leads"], true);
    assert_eq!(first["stdin"], "");
    assert_eq!(first["files"], json!([0, 1, 2]));
    // The three, the step's socket, and the listing's own.
    assert_eq!(first["extra"], 5);
    assert_eq!(first["worker"], json!(null));
    assert_eq!(first["mode"], "0o700");
    assert_ne!(first["random"], second["random"]);
    assert_eq!(first["ppid"], second["ppid"], "both are forks of one template");
}

#[tokio::test]
async fn fifty_concurrent_steps_get_their_own_results() {
    let tools = registry();
    let code =
        "print(n)\ntime.sleep(0.05)\nopen(str(n), 'w').close()\nresult = [n, os.listdir('.')]";
    let steps = (0..50).map(|n| {
        let tools = tools.clone();
        let captured = CapturedLog::default();
        let mut step = call(json!({"code": code}));
        step.input = map(json!({"n": n}));
        step.logs = captured.sink();
        let running = tokio::spawn(async move { tools.run("python", step).await });
        (n, captured, running)
    });
    for (n, captured, running) in steps.collect::<Vec<_>>() {
        assert_eq!(running.await.unwrap(), Ok(json!([n, [n.to_string()]])));
        assert_eq!(captured.text(), format!("{n}\n"));
    }
}

#[tokio::test]
async fn a_gigabyte_of_output_is_truncated_and_does_not_fail_the_step() {
    let captured = CapturedLog::default();
    let mut step = call(json!({
        "code": "import subprocess\nprint('first')\nsubprocess.run(['head', '-c', '1000000000', '/dev/zero'])\n\
                 print('last')\nresult = 'done'",
    }));
    step.logs = captured.sink();
    assert_eq!(registry().run("python", step).await, Ok(json!("done")));
    let text = captured.text();
    assert!(text.starts_with("first\n") && text.ends_with("last\n"));
    assert!(text.len() < 1_100_000, "{} bytes kept", text.len());
    let gap = 1_000_000_000 + "first\nlast\n".len() - 1024 * 1024;
    assert!(text.contains(&format!("[... {gap} bytes left out ...]")));
}

#[tokio::test]
async fn inputs_of_megabytes_arrive() {
    let mut step = call(json!({"code": "result = len(text)"}));
    step.input = map(json!({"text": "ü".repeat(4_000_000)}));
    assert_eq!(registry().run("python", step).await, Ok(json!(4_000_000)));
}

#[tokio::test]
async fn limits_are_enforced() {
    let code = "x = bytearray(600 * 1024 * 1024)";
    let config = json!({"code": code, "limits": {"memory_mb": 400}});
    let failure = run("python", config).await.unwrap_err();
    assert_eq!(detail(&failure, "exception_type"), "MemoryError");

    let config = json!({"code": "while True: pass", "limits": {"cpu_seconds": 1}});
    let failure = run("python", config).await.unwrap_err();
    assert_eq!((failure.kind, failure.retryable), (FailureKind::Timeout, false));

    let code = "files = [open('/dev/null') for _ in range(100)]";
    let failure =
        run("python", json!({"code": code, "limits": {"open_files": 20}})).await.unwrap_err();
    assert_eq!(detail(&failure, "exception_type"), "OSError");
}

#[tokio::test]
async fn threads_end_before_the_step_and_forks_do_not_return_its_result() {
    let code = "\
import threading
def late():
    time.sleep(0.1)
    print('late')
threading.Thread(target=late).start()
if os.fork() == 0:
    result = 'the fork'
else:
    os.wait()
    result = 'the step'
";
    let captured = CapturedLog::default();
    let mut step = call(json!({"code": code}));
    step.logs = captured.sink();
    assert_eq!(registry().run("python", step).await, Ok(json!("the step")));
    assert_eq!(captured.text(), "late\n");
}
