#!/usr/bin/env bash
# Checks the isolation level that each deployment gets (docs/guide/deploy.md), in real containers and on this machine,
# and runs a shell and a Python step at that level. Needs root, for the containers and to become other users.
#
#   deploy/levels.sh [program]
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

needs podman podman "runs containers"
needs runc runc "runs containers"
needs setpriv util-linux "becomes another user"
provide_needs

program=$(realpath "${1:-bin/noetl}")
place=$(mktemp -d /tmp/noetl-levels-XXXXXX)
trap 'rm -rf "$place"' EXIT
chmod 0755 "$place"

# The user of the image.
user=10001
mkdir -p "$place/home" "$place/root"/{etc,usr,var/lib/noetl,tmp,proc,sys,dev,run}
ln -s usr/bin usr/lib usr/lib64 "$place/root"
printf 'noetl:x:%s:%s::/var/lib/noetl:/bin/sh\n' "$user" "$user" >"$place/root/etc/passwd"
chmod 1777 "$place/root/tmp"
cp "$program" "$place/root/noetl"
cat >"$place/root/steps.yaml" <<'YAML'
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: steps, path: levels/steps}
workflow:
  - step: start
    tool: {kind: shell, command: "echo a"}
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: python, code: "result = {'ran': True}"}
YAML
chown -R "$user:$user" "$place/root/var/lib/noetl" "$place/home"

# in_container [option..]: what follows `--` as the image runs it: its user, the system's programs, no settings.
in_container() {
  local options=()
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  shift
  podman --cgroup-manager=cgroupfs --runtime runc run --rm --network none --ulimit nofile=1024:4096 \
    --ulimit nproc=1000:1000 --user "$user:$user" --workdir /var/lib/noetl --env HOME=/var/lib/noetl \
    --volume /usr:/usr:ro --volume /etc/ssl:/etc/ssl:ro "${options[@]}" --rootfs "$place/root" "$@"
}

# check <deployment> <level> <command..>: the level that `noetl doctor` reports there, and that steps run.
check() {
  local deployment=$1 expected=$2 found
  shift 2
  # No server runs there, which is another check of the doctor's.
  found=$( ("$@" doctor 2>&1 || true) | sed -n 's/.*steps are isolated at level \([0-9]\).*/\1/p')
  if [ "$found" != "$expected" ]; then
    "$@" doctor >&2 || true
    say "$deployment: level ${found:-unknown}, expected $expected"
    exit 1
  fi
  "$@" run "${STEPS:-/steps.yaml}" >"$place/run.log" 2>&1 || {
    cat "$place/run.log" >&2
    say "$deployment: a step failed at level $found"
    exit 1
  }
  say "$deployment: level $found, steps run"
}

check "image, default container runtime" 1 in_container -- /noetl
check "image, no capabilities and no new privileges" 1 \
  in_container --cap-drop all --security-opt no-new-privileges -- /noetl
check "image, namespaces allowed" 2 \
  in_container --security-opt seccomp=unconfined --security-opt unmask=ALL -- /noetl

export STEPS=$place/root/steps.yaml HOME=$place/home
cd "$place/home"
as_user=(setpriv --reuid "$user" --regid "$user" --clear-groups)
level=1
if "${as_user[@]}" unshare --user --mount --pid --fork true 2>/dev/null; then level=2; fi
check "unit, unprivileged user" "$level" "${as_user[@]}" "$place/root/noetl"
check "unit, root with a user for each tenant" 3 env NOETL_STEP_USERS=200000-265535 "$place/root/noetl"
