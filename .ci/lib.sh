# shellcheck shell=bash
# Functions that the scripts of this folder share. Source this file. It changes to the project's
# folder and sets
#   ROOT        the project's folder
#   WEFT        the weft to check: the caller's, otherwise the release build
#   OUT         the folder that the check may write: below target/ci, named after the script
#   TOOLS_HOME  the folder of installed tools: outside the clone, so that other clones find them
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
NAME=${0##*/}
WEFT=${WEFT:-${CARGO_TARGET_DIR:-$ROOT/target}/release/weft}
OUT=${CARGO_TARGET_DIR:-$ROOT/target}/ci/$NAME
TOOLS_HOME=${WEFT_CI_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/weft-ci}/tools
export DEBIAN_FRONTEND=noninteractive

note() { echo "$NAME: $*"; }
fail() { note "FAILED: $*" >&2; exit 1; }
# skip REASON: end the check as "not checked" (status 77).
skip() { note "not checked: $*"; exit 77; }

# is_short: true if `.ci/run` without `all` runs the check. A check that is called directly runs in
# its long form.
is_short() { [ "${WEFT_CI_TIER:-all}" = short ]; }

# fresh_out: empty $OUT.
fresh_out() {
    rm -rf "$OUT"
    mkdir -p "$OUT"
}

# need_weft: fail if there is no weft to check.
need_weft() {
    command -v "$WEFT" >/dev/null || fail "no weft at $WEFT; run 'make build', or set WEFT=PATH"
}

# need COMMAND PACKAGE [COMMAND PACKAGE]...: install the Debian packages of missing commands.
need() {
    local missing=()
    while [ $# -gt 0 ]; do
        command -v "$1" >/dev/null || missing+=("$2")
        shift 2
    done
    [ ${#missing[@]} = 0 ] || install_packages "${missing[@]}"
}

# install_packages PACKAGE...: run apt-get as root, or through a sudo that requires no password.
install_packages() {
    local as=()
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || fail "needs $*: install them, or run this as root"
        as=(sudo -n)
    fi
    command -v apt-get >/dev/null || fail "needs $*, and there is no apt-get to install them with"
    note "installing $* with apt-get"
    # The first try fails if the package lists are missing or old.
    # Two checks may install at the same time: the second waits for the first.
    local lock=(-o DPkg::Lock::Timeout=600)
    "${as[@]}" apt-get "${lock[@]}" install -qq -y --no-install-recommends "$@" >/dev/null 2>&1 ||
        { "${as[@]}" apt-get "${lock[@]}" update -qq && "${as[@]}" apt-get "${lock[@]}" install -qq -y --no-install-recommends "$@" >/dev/null; } ||
        fail "apt-get could not install $*"
}

# python_tools NAME PACKAGE==VERSION...: install packages from PyPI in their own environment. Sets
# TOOLS to its folder.
python_tools() {
    local name=$1
    shift
    TOOLS=$TOOLS_HOME/$name-$(printf '%s\n' "$@" | sha256sum | cut -c1-12)
    [ ! -e "$TOOLS/complete" ] || return 0
    mkdir -p "$TOOLS_HOME"
    # Two checks may need the same tools at the same time.
    (
        flock 9
        [ ! -e "$TOOLS/complete" ] || exit 0
        python3 -m venv --help >/dev/null 2>&1 && python3 -c 'import ensurepip' 2>/dev/null || install_packages python3-venv
        rm -rf "$TOOLS"
        python3 -m venv "$TOOLS" && "$TOOLS/bin/pip" install --quiet --disable-pip-version-check "$@" || fail "pip could not install $*"
        : >"$TOOLS/complete"
    ) 9>"$TOOLS_HOME/$name.lock" || exit 1
}

# cargo_tool COMMAND PACKAGE VERSION: install a command from the registry of Rust packages, compiled
# without optimisation, and put it on PATH.
cargo_tool() {
    local home=$TOOLS_HOME/$2-$3
    command -v "$1" >/dev/null && return 0
    PATH=$PATH:$home/bin
    [ -x "$home/bin/$1" ] && return 0
    note "installing $2 $3"
    # Use another target folder: a parallel step may hold the lock of the project's target folder.
    CARGO_TARGET_DIR=$home/build CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --debug --locked --version "$3" --root "$home" "$2" || fail "cargo could not install $2"
    rm -rf "$home/build"
}

# free_port: print a TCP port that no local socket uses right now.
free_port() {
    local port
    while :; do
        port=$((20000 + RANDOM % 12000))
        grep -qE "^ *[0-9]+: [0-9A-F]{8}:$(printf %04X "$port") " /proc/net/tcp || break
    done
    echo "$port"
}

# until_true SECONDS COMMAND...: run COMMAND until it succeeds. Status 1 if it never does.
until_true() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.1
    done
}

# builtin_run [OPTION...]: run the suites against the builtin responder, with reports in $OUT/run.
# weft must exit with status 1 if OPTION has a deviation, and with 0 otherwise.
builtin_run() {
    local want=0 status=0
    case " $* " in *" --deviate "*) want=1 ;; esac
    "$WEFT" test builtin --out "$OUT/run" "$@" >"$OUT/test.log" 2>&1 || status=$?
    [ "$status" = "$want" ] || { tail -20 "$OUT/test.log" >&2; fail "weft test builtin $*: status $status, not $want"; }
}
