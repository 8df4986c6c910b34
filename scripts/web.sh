#!/usr/bin/env bash
# Builds the web UI into web/dist, from where the next build of the program takes it.
#
#   web.sh            build it; without Node that is an error
#   web.sh if-there   build it where there is Node; elsewhere say that there will be none
#   web.sh install    only see to it that what it is made of is there
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

OLDEST=20.19.0

# The reason why it cannot be built here; nothing when it can.
hindrance() {
  if ! has node || ! has npm; then
    echo "Node and npm are not installed"
  elif ! node -e '
    const [wanted, given] = [process.argv[1], process.versions.node].map((v) => v.split(".").map(Number));
    const older = wanted.findIndex((part, place) => given[place] !== part);
    process.exit(older >= 0 && given[older] < wanted[older] ? 1 : 0)' "$OLDEST"; then
    echo "Node $(node --version) is older than $OLDEST"
  fi
}

# What the lock file names, once for each state of it.
install() {
  local mark=web/node_modules/.installed
  if cmp -s web/package-lock.json "$mark"; then return; fi
  (cd web && npm ci --no-audit --no-fund --loglevel=error) >&2
  cp web/package-lock.json "$mark"
}

build() {
  install
  (cd web && npm run --silent build) >&2
}

why_not=$(hindrance)
case ${1:-} in
  '' | install)
    if [ -n "$why_not" ]; then
      say "The web UI cannot be built: $why_not. Install Node $OLDEST or newer."
      exit 1
    fi
    if [ "${1:-}" = install ]; then install; else build; fi
    ;;
  if-there)
    if [ -n "$why_not" ]; then
      skip "the web UI, because $why_not; the program says how to get it"
    else
      # The program is whole without its UI, so a registry that is away stops nobody.
      build || skip "the web UI, because it could not be built; the reason is above"
    fi
    ;;
  *)
    sed -n '2,/^set /p' "$0" | grep '^#' | cut -c 3- >&2
    exit 2
    ;;
esac
