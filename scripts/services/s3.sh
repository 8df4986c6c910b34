#!/usr/bin/env bash
# Starts an S3 server for tests (moto, from PyPI) on a free port of this machine and prints its URL
# as the first line. What it holds is in memory. It ends when its standard input is closed, so that
# it cannot outlive the test that started it.
#
# The first run installs it into target/services; later runs, and others at the same time, find it.
# With the argument `install` it does only that, which may take minutes.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

MOTO=5.2.5
home=$(target_dir)/services/moto-$MOTO

install_moto() {
  [ -e "$home/installed" ] && return
  rm -rf "$home"
  python3 -m venv "$home"
  "$home/bin/pip" install --quiet --disable-pip-version-check "moto[server]==$MOTO"
  touch "$home/installed"
}

mkdir -p "$(dirname "$home")"
# One installs while the others wait; the lock goes with the shell that holds it.
(flock 9 && install_moto) 9>"$home.lock" >&2
[ "${1:-}" = install ] && exit

exec "$home/bin/python" -c '
import logging, sys
from moto.server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
print(f"http://{host}:{port}", flush=True)
sys.stdin.read()
server.stop()
'
