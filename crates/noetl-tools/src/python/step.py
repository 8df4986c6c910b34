# Runs one step's code in a child of the template, from request to answer.
#
# The child is forked for this one step, so nothing it changes (modules, environment, directory)
# is seen by another. It reads its request from a socket of its own and answers there once:
# R and the result as JSON, N when the code gave none, F and the failure as JSON.

import ast
import asyncio
import atexit
import base64
import builtins
import datetime
import decimal
import importlib
import inspect
import json
import keyword
import linecache
import math
import os
import re
import resource
import signal
import socket
import struct
import sys
import threading
import time
import traceback
import types
import uuid

# Modules an author may use without an import.
PRELOADED = {
    "json": json, "os": os, "re": re, "time": time, "math": math, "datetime": datetime,
    "uuid": uuid,
}
# The worker refuses a deeper result.
DEPTH_MAX = 100
MESSAGE_CHARS_MAX = 2000
TRACEBACK_CHARS_MAX = 16000
NOTHING = object()
# Bound here, so that code which replaces the module's functions can still answer.
to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class Refused(Exception):
    """A failure of the step that is no exception of its code."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


class FellThrough:
    """What wrapped code returns at its end: its local names."""

    def __init__(self, names):
        self.names = names


def answer_step(channel):
    """Reads the request from `channel`, runs it, answers."""
    own = os.getpid()
    request = json.loads(receive_frame(channel))
    step = Step(request)
    try:
        tag, body = step.run()
    except BaseException as error:
        tag, body = b"F", to_json(step.failure(error)).encode("utf-8", "replace")
    # A process the author forked may come along here too; its answer is not the step's.
    if os.getpid() != own:
        os._exit(0)
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass
    channel.sendall(tag + struct.pack(">I", len(body)) + body)
    os._exit(0)


def receive_frame(channel):
    (size,) = struct.unpack(">I", receive_exactly(channel, 4))
    return receive_exactly(channel, size)


def receive_exactly(channel, size):
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = channel.recv_into(view)
        if count == 0:
            os._exit(0)  # The worker is gone; nobody wants an answer.
        view = view[count:]
    return bytes(data)


class Step:
    def __init__(self, request):
        self.request = request
        self.inputs = request["input"]
        self.file = "<" + request["step"] + ">"
        self.names = {}

    def run(self):
        self.confine()
        code = self.request["code"]
        # Tracebacks show the author's lines, which are in no file.
        linecache.cache[self.file] = (len(code), None, code.splitlines(True), self.file)
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        self.names = module.__dict__
        self.names.update(PRELOADED, __builtins__=builtins)
        self.names.update(self.libraries())
        self.names["input_data"] = dict(self.inputs)
        self.names["context"] = {**self.request["context"], "args": self.inputs}
        self.names.update((k, v) for k, v in self.inputs.items() if not k.startswith("__"))
        try:
            value = self.perform(code)
        except SystemExit as leave:
            if leave.code not in (None, 0):
                raise
            value = self.names.get("result", NOTHING)
        if value is NOTHING:
            return b"N", b""
        body = encode(value)
        limit = self.request["result_max"]
        if len(body) > limit:
            raise Refused(
                "output_limit",
                "the result is %d bytes as JSON, more than the %d a step may return; "
                "write large data to a file or a table and return where it is" % (len(body), limit),
            )
        return b"R", body

    def confine(self):
        limits = self.request["limits"]
        set_limit(resource.RLIMIT_CORE, 0)
        if "memory_mb" in limits:
            set_limit(resource.RLIMIT_AS, limits["memory_mb"] * 1024 * 1024)
        if "cpu_seconds" in limits:
            set_limit(resource.RLIMIT_CPU, limits["cpu_seconds"])
        if "open_files" in limits:
            set_limit(resource.RLIMIT_NOFILE, limits["open_files"])
        os.environ.update(self.request["env"])
        os.chdir(self.request["cwd"])

    def libraries(self):
        """The modules and names `libs` asks for, by alias."""
        found = {}
        libs = self.request["libs"]
        for alias, spec in libs.items() if isinstance(libs, dict) else ():
            source, name = (spec["from"], spec["import"]) if isinstance(spec, dict) else (spec, None)
            try:
                module = importlib.import_module(source)
                found[alias] = module if name is None else getattr(module, name)
            except ModuleNotFoundError as error:
                raise Refused(
                    "tool_missing",
                    "`libs.%s`: %s; install it for the worker's Python" % (alias, error),
                ) from None
            except AttributeError:
                raise Refused(
                    "config", "`libs.%s`: module '%s' has no '%s'" % (alias, source, name)
                ) from None
        return found

    def perform(self, code):
        """Runs the code and finds its result: `result`, `main()`, a top-level return."""
        tree = compile(code, self.file, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        try:
            program = compile(tree, self.file, "exec", dont_inherit=True)
        except SyntaxError as error:
            if "'return' outside function" not in str(error.msg):
                raise
            program = None
        if program is not None:
            exec(program, self.names)
        else:
            value = self.perform_as_function(tree)
            if not isinstance(value, FellThrough):
                return value
            self.names.update(value.names)
        names = self.names
        given = "result" in self.inputs
        if "result" in names and not (given and names["result"] is self.inputs["result"]):
            return names["result"]
        if callable(names.get("main")):
            return self.call_main(names["main"])
        return names.get("result", NOTHING)

    def perform_as_function(self, tree):
        """Runs code that returns at its top level as a function's body.

        Every name it can see is a parameter: were they globals, a name that the code also
        assigns would be unbound before the assignment.
        """
        given = {
            name: value for name, value in self.names.items()
            if name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("__")
        }
        head = "def __step__(*, %s): return __end__(locals())" % ", ".join(given)
        wrapper = ast.parse(head)
        is_future = lambda node: isinstance(node, ast.ImportFrom) and node.module == "__future__"
        function = wrapper.body[0]
        function.body[:0] = [node for node in tree.body if not is_future(node)]
        wrapper.body[:0] = [node for node in tree.body if is_future(node)]
        self.names["__end__"] = FellThrough
        exec(compile(wrapper, self.file, "exec", dont_inherit=True), self.names)
        return self.names.pop("__step__")(**given)

    def call_main(self, main):
        """Calls `main` with the inputs it declares; all of them if it takes any name."""
        offered = {"input_data": self.names["input_data"], "context": self.names["context"]}
        offered.update(self.inputs)
        try:
            parameters = inspect.signature(main).parameters.values()
        except (TypeError, ValueError):
            parameters = ()
        positional = []
        named = {}
        for parameter in parameters:
            if parameter.kind is parameter.VAR_KEYWORD:
                named.update((k, v) for k, v in self.inputs.items() if k not in named)
            elif parameter.kind is parameter.POSITIONAL_ONLY:
                if parameter.name in offered:
                    positional.append(offered[parameter.name])
            elif parameter.kind is not parameter.VAR_POSITIONAL and parameter.name in offered:
                named[parameter.name] = offered[parameter.name]
        value = main(*positional, **named)
        if inspect.isawaitable(value):
            value = asyncio.run(wait_for(value))
        return value

    def failure(self, error):
        """Describes what the code raised, with the line of the author's it came from."""
        if isinstance(error, Refused):
            return {"kind": error.kind, "message": str(error)}
        name = type(error).__name__
        line = self.line_of(error)
        text = printable(error.msg if isinstance(error, SyntaxError) else error)
        report = {
            "kind": kind_of(error, self.file),
            "exception_type": name,
            "line": line,
            "traceback": self.traceback_of(error)[-TRACEBACK_CHARS_MAX:],
        }
        if isinstance(error, SystemExit):
            code = error.code if isinstance(error.code, int) else 1
            text = printable(error.code)
            report["exit_code"] = int(code) & 0xFF
        message = "%s: %s" % (name, text) if text else name
        if isinstance(error, ModuleNotFoundError) and isinstance(self.request["libs"], list):
            message += "; a list under `libs` installs nothing, install it for the worker's Python"
        if len(message) > MESSAGE_CHARS_MAX:
            message = message[:MESSAGE_CHARS_MAX] + "..."
        report["message"] = message if line is None else "%s (line %d)" % (message, line)
        return report

    def line_of(self, error):
        if isinstance(error, SyntaxError) and error.filename == self.file:
            return error.lineno
        line = None
        for frame, number in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename == self.file:
                line = number
        return line

    def traceback_of(self, error):
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename != self.file:
            frames = frames.tb_next
        try:
            return "".join(traceback.format_exception(type(error), error, frames))
        except BaseException:
            return "the traceback could not be printed"


async def wait_for(value):
    return await value


def set_limit(which, wanted):
    """Lowers a limit; what the worker itself was given stays the ceiling."""
    _, ceiling = resource.getrlimit(which)
    if ceiling != resource.RLIM_INFINITY:
        wanted = min(wanted, ceiling)
    # One above the soft limit of CPU time, so that the signal that names the reason comes first.
    hard = wanted + 1 if which == resource.RLIMIT_CPU else wanted
    if ceiling != resource.RLIM_INFINITY:
        hard = min(hard, ceiling)
    resource.setrlimit(which, (wanted, hard))


def kind_of(error, file):
    if isinstance(error, SystemExit):
        return "exit_code"
    if isinstance(error, SyntaxError):
        return "config" if error.filename == file else "unknown"
    if isinstance(error, json.JSONDecodeError):
        return "parse"
    if isinstance(error, (TypeError, ValueError, KeyError, IndexError)):
        return "schema"
    return "unknown"


def printable(value):
    """A value's text even when its own `__str__` fails; lone surrogates are escaped."""
    try:
        return str(value).encode("utf-8", "backslashreplace").decode()
    except BaseException:
        return "(cannot be printed)"


def encode(value):
    """The value as JSON bytes, in one pass when it is plain data."""
    try:
        text = to_json(value)
    except (TypeError, ValueError, RecursionError):
        text = None
    # The worker's JSON has 64-bit integers: a longer one would silently lose its last digits.
    if text is None or re.search(r"\d{19}", text):
        text = to_json(plain_of(value, "result", 0))
    return text.encode("utf-8", "replace")


def plain_of(value, path, depth):
    """The value as plain data that JSON can carry without loss, or a refusal naming the place."""
    if depth > DEPTH_MAX:
        raise Refused(
            "schema", "the result nests more than %d levels deep or contains itself" % DEPTH_MAX
        )
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**64 else long_text(value, path)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Refused("schema", "%s is %r, which JSON cannot carry; return None" % (path, value))
        return float(value)
    if isinstance(value, decimal.Decimal):
        return plain_of_decimal(value, path)
    if isinstance(value, dict):
        return {
            key_text(key): plain_of(item, "%s[%r]" % (path, key) if depth < 8 else path, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, (set, frozenset)):
        try:
            value = sorted(value)
        except TypeError:
            value = list(value)
    if isinstance(value, (list, tuple)):
        return [
            plain_of(item, "%s[%d]" % (path, place) if depth < 8 else path, depth + 1)
            for place, item in enumerate(value)
        ]
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode()
    if callable(getattr(value, "tolist", None)):
        return plain_of(value.tolist(), path, depth + 1)
    return str(value)


def plain_of_decimal(value, path):
    if not value.is_finite():
        raise Refused("schema", "%s is %s, which JSON cannot carry; return None" % (path, value))
    # Guards against Decimal("1e999999999"), whose digits would fill the memory.
    if abs(value.adjusted()) < 300:
        if value == value.to_integral_value() and -(2**63) <= value < 2**64:
            return int(value)
        if decimal.Decimal(repr(float(value))) == value:
            return float(value)
    return str(value)


def long_text(value, path):
    try:
        return str(value)
    except ValueError:
        bits = value.bit_length()
        raise Refused("schema", "%s is an integer of %d bits, too long to print" % (path, bits))


def key_text(key):
    if key is None or isinstance(key, (bool, int, float)):
        return to_json(key)
    return key if isinstance(key, str) else str(key)
