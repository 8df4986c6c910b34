# shellcheck shell=bash
# Programs that the scripts need from the machine. As root on a machine with apt, missing ones are installed;
# otherwise the user is told exactly what to install. Sourced after lib.sh, not run.

NEEDED_PACKAGES=()
NEEDED_TEXTS=()

# needs <command> <package> <purpose>: records a missing program for provide_needs.
needs() {
  if has "$1"; then return; fi
  NEEDED_PACKAGES+=("$2")
  NEEDED_TEXTS+=("  $1 ($3): install the package $2")
}

may_install() { [ "$(id -u)" = 0 ] && has apt-get; }

# Waits for another installation instead of failing on its lock: two clones may set up at once.
apt_install() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get -o DPkg::Lock::Timeout=300 update -qq >&2 || say "  apt could not update its lists and uses those it has."
  # gcc alone brings no C library headers.
  apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$@" libc6-dev >&2
}

# Installs the recorded packages, or lists them and ends the script.
provide_needs() {
  if [ ${#NEEDED_PACKAGES[@]} = 0 ]; then return; fi
  if ! may_install; then
    say "Missing, and only root on a machine with apt may install them from here:"
    printf '%s\n' "${NEEDED_TEXTS[@]}" >&2
    exit 3
  fi
  say "Installing ${NEEDED_PACKAGES[*]} with apt."
  if ! apt_install "${NEEDED_PACKAGES[@]}"; then
    say "apt could not install:"
    printf '%s\n' "${NEEDED_TEXTS[@]}" >&2
    exit 3
  fi
}

# Provides a C compiler and cargo, which every build needs, and whatever was recorded before.
provide_build_needs() {
  needs cc gcc "compiles the embedded database"
  provide_needs
  if ! has cargo; then
    lacking "Missing: cargo. Install Rust with the installer at https://rustup.rs, then run this again."
  fi
}

# Only python steps need Python, so its absence does not stop a build.
warn_without_python() {
  local python=${NOETL_PYTHON:-python3}
  has "$python" || say "Without $python, python steps fail until it is installed."
}
