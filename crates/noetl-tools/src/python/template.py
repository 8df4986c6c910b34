# The warm interpreter that steps are forked from.
#
# One thread, so that fork is safe. The worker sends `F id` with three descriptors (the step's
# socket, its stdout and stderr) or `K id` to kill a step's group; it is told `S id pid`, then
# `X id status` once the step is reaped, or `E id errno` when there was no fork. Requests and
# answers never pass through here. The end of the control socket is the end of the worker: every
# step is killed and its files are removed. In a sandbox there is one step at a time, and all it
# started is ended before its end is reported.

import array
import ctypes
import errno
import gc
import select
import shutil

REQUEST = struct.Struct(">cQ")
REPORT = struct.Struct(">cQq")
DESCRIPTORS = 3
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
# Signals meant for the worker may reach the whole service; the worker decides when this ends.
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Template:
    def __init__(self, base, is_sandboxed):
        self.base = base
        self.is_sandboxed = is_sandboxed
        self.pid = os.getpid()
        close_inherited()
        self.control = socket.socket(fileno=os.dup(0))
        silence(0)
        self.steps = {}  # pid by id
        self.ids = {}  # id by pid
        self.woken, self.wake = os.pipe()
        os.set_blocking(self.woken, False)
        os.set_blocking(self.wake, False)
        try:
            self.prctl = ctypes.CDLL(None).prctl
        except (OSError, AttributeError):
            self.prctl = None  # Not Linux: the end of the control socket has to do.
        if is_sandboxed:
            # What a step leaves becomes a child of this process, which no step can trace.
            self.prctl(PR_SET_CHILD_SUBREAPER, 1)
            self.prctl(PR_SET_DUMPABLE, 0)

    def serve(self):
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wake, warn_on_full_buffer=False)
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)
        # Steps never collect what is loaded here, and so never copy its pages.
        gc.collect()
        gc.freeze()
        self.report(b"H", 0, self.pid)
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.woken, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == self.woken:
                    os.read(self.woken, 4096)
                    self.reap()
                elif not self.receive():
                    return self.end()

    def receive(self):
        """Takes one message; false when the worker is gone."""
        try:
            data, extra, _, _ = self.control.recvmsg(
                REQUEST.size, socket.CMSG_SPACE(DESCRIPTORS * array.array("i").itemsize)
            )
        except OSError:
            return False
        if 0 < len(data) < REQUEST.size:
            data += self.control.recv(REQUEST.size - len(data), socket.MSG_WAITALL)
        if len(data) < REQUEST.size:
            return False
        tag, id = REQUEST.unpack(data)
        descriptors = array.array("i")
        for level, kind, content in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(content[: len(content) // 4 * 4])
        if tag == b"F" and len(descriptors) == DESCRIPTORS:
            self.fork(id, descriptors)
        elif tag == b"F":
            self.report(b"E", id, errno.EMFILE)
        elif id in self.steps:
            kill_group(self.steps[id])
        if len(descriptors) != DESCRIPTORS:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def fork(self, id, descriptors):
        try:
            pid = os.fork()
        except OSError as error:
            pid = None
            self.report(b"E", id, error.errno)
        if pid == 0:
            try:
                self.become_step(*descriptors)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(70)
        for descriptor in descriptors:
            os.close(descriptor)
        if pid is not None:
            self.steps[id] = pid
            self.ids[pid] = id
            self.report(b"S", id, pid)

    def become_step(self, channel, stdout, stderr):
        os.setsid()
        if self.prctl is not None:
            self.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != self.pid:
                os._exit(70)
            if self.is_sandboxed:
                self.prctl(PR_SET_DUMPABLE, 1)
        signal.set_wakeup_fd(-1)
        for number in (*IGNORED, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.control.close()
        os.close(self.woken)
        os.close(self.wake)
        for source, target in ((stdout, 1), (stderr, 2)):
            os.dup2(source, target, inheritable=True)
            os.close(source)
        os.set_inheritable(channel, False)
        sys.stdout = sys.__stdout__ = open_stream(1)
        sys.stderr = sys.__stderr__ = open_stream(2)
        sys.stdin = sys.__stdin__ = open(0, closefd=False)
        sys.argv = [""]
        answer_step(socket.socket(fileno=channel))

    def reap(self):
        """Reports every step that ended, after killing what it left running.

        The group is killed while its leader is still there to be reaped: until then no new
        process can have its number.
        """
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            pid = ended.si_pid
            id = self.ids.pop(pid, None)
            if id is not None:
                kill_group(pid)
            _, status = os.waitpid(pid, 0)
            if id is not None:
                if self.is_sandboxed:
                    sweep(self.pid)
                del self.steps[id]
                self.report(b"X", id, status)

    def report(self, tag, id, value):
        try:
            self.control.sendall(REPORT.pack(tag, id, value))
        except OSError:
            pass  # The worker is gone; the next read says so.

    def end(self):
        for pid in self.ids:
            kill_group(pid)
        for pid in self.ids:
            os.waitpid(pid, 0)
        if not self.is_sandboxed:
            shutil.rmtree(self.base, ignore_errors=True)


def close_inherited():
    """Closes what the worker's own parents left open, which is no business of a step."""
    for name in os.listdir("/dev/fd"):
        if int(name) > 2:
            try:
                os.close(int(name))
            except OSError:
                pass  # The listing's own.


def kill_group(pid):
    for kill in (os.killpg, os.kill):  # The leader by itself too: it may not lead yet.
        try:
            kill(pid, signal.SIGKILL)
        except OSError:
            pass


def sweep(own):
    """Kills and reaps everything below this process: all that is left of a step."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        for pid in descendants(own):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def descendants(own):
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(name))
    found = []
    pending = [own]
    while pending:
        below = children.get(pending.pop(), [])
        found += below
        pending += below
    return found


def silence(descriptor):
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, descriptor, inheritable=True)
    os.close(null)


def open_stream(descriptor):
    return open(
        descriptor, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False
    )


Template(sys.argv[1], "sandboxed" in sys.argv[2:]).serve()
