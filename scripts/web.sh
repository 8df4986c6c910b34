#!/usr/bin/env bash
# Builds the web UI into web/dist, which the next build of the program embeds. An unchanged UI is not built
# again, so that the program is not relinked for it.
#
#   web.sh              build it; without Node that is an error
#   web.sh if-there     build it where there is Node; otherwise report that the program will have none
#   web.sh beside CMD   the same in the background while CMD runs, which may build the program; waits for both
#   web.sh install      only install its packages
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

OLDEST=20.19.0
# Held while web/dist is written. The build script of noetl-web waits for it and reruns when it is touched.
LOCK=web/.build.lock

# Prints why the UI cannot be built here, or nothing.
hindrance() {
  if ! has node || ! has npm; then
    echo "Node and npm"
  elif ! node -e '
    const [wanted, given] = [process.argv[1], process.versions.node].map((v) => v.split(".").map(Number));
    const older = wanted.findIndex((part, place) => given[place] !== part);
    process.exit(older >= 0 && given[older] < wanted[older] ? 1 : 0)' "$OLDEST"; then
    echo "Node $OLDEST"
  fi
}

# Installs the packages of the lock file, once for each state of it.
install() {
  local mark=web/node_modules/.installed
  if cmp -s web/package-lock.json "$mark"; then return; fi
  (cd web && npm ci --no-audit --no-fund --loglevel=error) >&2
  cp web/package-lock.json "$mark"
}

# Identifies the sources that web/dist is built from.
sources() {
  (cd web && find index.html package.json package-lock.json tsconfig.json vite.config.ts public scripts src -type f -print0 |
    sort -z | xargs -0 sha256sum | sha256sum)
}

is_current() { [ -f web/dist/index.html ] && [ "$(cat web/dist/.sources 2>/dev/null)" = "$(sources)" ]; }

build() {
  local built_from
  if is_current; then return; fi
  install
  built_from=$(sources)
  (cd web && npm run --silent build) >&2
  printf '%s\n' "$built_from" >web/dist/.sources
}

# The program is complete without its UI, so a registry that does not respond stops only the gate.
build_if_possible() {
  build || skip "web UI" "make web, once its packages can be installed" "the web UI in the program"
}

# Cargo compares the files with the time at which the waiting build script started, so they get an earlier one;
# otherwise the next build would embed them again.
build_beside() {
  build_if_possible
  find web/dist -exec touch -r "$LOCK" {} +
}

missing=$(hindrance)
case ${1:-} in
  '' | install)
    if [ -n "$missing" ]; then lacking "The web UI cannot be built: $missing is missing. Install Node $OLDEST or newer."; fi
    if [ "${1:-}" = install ]; then install; else build; fi
    ;;
  if-there | beside)
    if [ -n "$missing" ]; then
      skip "$missing" "install Node $OLDEST or newer" "the web UI in the program"
      if [ "$1" = beside ]; then "${@:2}"; fi
    elif [ "$1" = if-there ] || is_current; then
      build_if_possible
      if [ "$1" = beside ]; then "${@:2}"; fi
    else
      # Locked and touched before cargo starts, so that cargo reruns the build script, which then waits.
      exec 8>"$LOCK"
      flock 8
      touch "$LOCK"
      build_beside &
      exec 8>&-
      "${@:2}"
      wait $!
    fi
    ;;
  *)
    sed -n '2,/^set /p' "$0" | grep '^#' | cut -c 3- >&2
    exit 2
    ;;
esac
