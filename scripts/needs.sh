# shellcheck shell=bash
# What the scripts need of the machine. As root on a machine with apt, what is missing is installed;
# elsewhere the user is told exactly what to install. Sourced after lib.sh, not run.

NEEDED_PACKAGES=()
NEEDED_TEXTS=()

# needs <command> <package> <what for>: notes what is missing; provide_needs deals with it.
needs() {
  if has "$1"; then return; fi
  NEEDED_PACKAGES+=("$2")
  NEEDED_TEXTS+=("  $1 ($3): install the package $2")
}

may_install() { [ "$(id -u)" = 0 ] && has apt-get; }

# Installs what is missing, or says so and ends the script.
provide_needs() {
  if [ ${#NEEDED_PACKAGES[@]} = 0 ]; then return; fi
  if ! may_install; then
    say "Missing, and this script may not install it here:"
    printf '%s\n' "${NEEDED_TEXTS[@]}" >&2
    exit 1
  fi
  say "Installing ${NEEDED_PACKAGES[*]} with apt."
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >&2 || say "  apt could not update its lists; trying with those it has"
  # gcc alone brings no C library headers.
  if ! apt-get install -y -qq --no-install-recommends "${NEEDED_PACKAGES[@]}" libc6-dev >&2; then
    say "apt could not install what is missing:"
    printf '%s\n' "${NEEDED_TEXTS[@]}" >&2
    exit 1
  fi
}

# What every build takes: a C compiler and cargo. Provides what was noted before as well.
provide_build_needs() {
  needs cc gcc "compiles the embedded database"
  provide_needs
  if ! has cargo; then
    say "Missing: cargo. Install Rust with the installer at https://rustup.rs, then try again."
    exit 1
  fi
}

# Only python steps need it, so its lack is no reason to stop.
warn_without_python() {
  local python=${NOETL_PYTHON:-python3}
  has "$python" || say "Without $python; python steps will fail until it is installed."
}
