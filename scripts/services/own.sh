# shellcheck shell=bash
# Servers of a test's own: start, stop, remove. Sourced after lib.sh by a script that says how to
# `install`, `launch` and find one `ready`, and what its `url` is; not run.

running() { [ -f "$1/pid" ] && kill -0 "$(cat "$1/pid")" 2>/dev/null; }

# asked PORT TEXT BYTES: what a server answers to a text, up to so many bytes, without the line's end.
asked() {
  python3 -c '
import socket, sys
try:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 1) as s:
        s.sendall(sys.argv[2].encode().decode("unicode_escape").encode("latin-1"))
        print(s.recv(int(sys.argv[3])).decode("latin-1").replace("\0", "").strip())
except OSError:
    pass' "$@"
}

start() {
  local dir=$1 tries wait
  shift
  if running "$dir"; then
    url "$dir"
    return
  fi
  mkdir -p "$dir"
  if [ ! -f "$dir/port" ]; then free_port >"$dir/port"; fi
  for tries in 1 2 3 4 5; do
    # Its output goes to a file: a caller who reads ours would wait for its end as well.
    (launch "$dir" "$@") </dev/null >>"$dir/log" 2>&1 9>&- &
    echo $! >"$dir/pid"
    for wait in $(seq 1 100); do
      if ! running "$dir"; then break; fi
      if ready "$dir"; then
        url "$dir"
        return
      fi
      sleep "0.0$((wait > 9 ? 9 : wait))"
    done
    # Somebody else may have taken the port since it was found free.
    say "The server did not start (try $tries); another port is tried."
    end "$dir" KILL
    free_port >"$dir/port"
  done
  tail -n 20 "$dir/log" >&2
  exit 1
}

# end DIR SIGNAL: ends the server, and waits for that.
end() {
  local pid wait
  if ! running "$1"; then return; fi
  pid=$(cat "$1/pid")
  kill -s "$2" "$pid" 2>/dev/null || true
  for wait in $(seq 1 200); do
    if ! kill -0 "$pid" 2>/dev/null; then break; fi
    sleep "0.0$((wait > 9 ? 9 : wait))"
  done
  rm -f "$1/pid"
}

main() {
  install
  case ${1:-} in
    install) ;;
    start) start "${@:2}" ;;
    stop) end "$2" TERM ;;
    remove)
      end "$2" KILL
      rm -rf "$2"
      ;;
    *)
      sed -n '2,/^set /p' "$0" | grep '^#' | cut -c 3- >&2
      exit 2
      ;;
  esac
}
