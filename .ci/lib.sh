# shellcheck shell=bash
# What the scripts of this folder share. Source it; it goes to the project's folder and sets
#   ROOT   the project's folder
#   WEFT   the weft to check: the caller's, else the release build
#   OUT    where the check may write: below target/ci, new and empty, named after the script
#   TOOLS_HOME  where installed tools are kept: outside the clone, so that the next clone finds them
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
# skip REASON: there is nothing to check with here.
skip() { note "not checked: $*"; exit 77; }

# is_short: `.ci/run` without `all` wants the short form of a check. A check that is called directly runs completely.
is_short() { [ "${WEFT_CI_TIER:-all}" = short ]; }

# fresh_out: an empty $OUT.
fresh_out() {
    rm -rf "$OUT"
    mkdir -p "$OUT"
}

# need_weft: stop with a sentence when there is no weft to check.
need_weft() {
    command -v "$WEFT" >/dev/null || fail "no weft at $WEFT; 'make build' makes it, WEFT=PATH names another"
}

# need COMMAND PACKAGE [COMMAND PACKAGE]...: install the Debian packages of the commands that are missing.
need() {
    local missing=()
    while [ $# -gt 0 ]; do
        command -v "$1" >/dev/null || missing+=("$2")
        shift 2
    done
    [ ${#missing[@]} = 0 ] || install_packages "${missing[@]}"
}

# install_packages PACKAGE...: by apt-get, as root or through a sudo that asks nothing.
install_packages() {
    local as=()
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || fail "needs $*: install them, or run this as root"
        as=(sudo -n)
    fi
    command -v apt-get >/dev/null || fail "needs $*, and there is no apt-get to install them with"
    note "installing $* with apt-get"
    # Package lists that are missing or old make the first try fail.
    # Two checks may install at the same time: the second waits for the first.
    local lock=(-o DPkg::Lock::Timeout=600)
    "${as[@]}" apt-get "${lock[@]}" install -qq -y --no-install-recommends "$@" >/dev/null 2>&1 ||
        { "${as[@]}" apt-get "${lock[@]}" update -qq && "${as[@]}" apt-get "${lock[@]}" install -qq -y --no-install-recommends "$@" >/dev/null; } ||
        fail "apt-get could not install $*"
}

# python_tools NAME PACKAGE==VERSION...: packages from PyPI in an environment of their own; sets TOOLS to its folder.
python_tools() {
    local name=$1
    shift
    TOOLS=$TOOLS_HOME/$name-$(printf '%s\n' "$@" | sha256sum | cut -c1-12)
    [ ! -e "$TOOLS/complete" ] || return 0
    mkdir -p "$TOOLS_HOME"
    # Two checks may want the same tools at the same time.
    (
        flock 9
        [ ! -e "$TOOLS/complete" ] || exit 0
        python3 -m venv --help >/dev/null 2>&1 && python3 -c 'import ensurepip' 2>/dev/null || install_packages python3-venv
        rm -rf "$TOOLS"
        python3 -m venv "$TOOLS" && "$TOOLS/bin/pip" install --quiet --disable-pip-version-check "$@" || fail "pip could not install $*"
        : >"$TOOLS/complete"
    ) 9>"$TOOLS_HOME/$name.lock" || exit 1
}

# cargo_tool COMMAND PACKAGE VERSION: a cargo subcommand from the registry of Rust packages, compiled without optimisation; puts it on PATH.
cargo_tool() {
    local home=$TOOLS_HOME/$2-$3
    command -v "$1" >/dev/null && return 0
    PATH=$PATH:$home/bin
    [ -x "$home/bin/$1" ] && return 0
    note "installing $2 $3"
    # Not into the project's target folder, which another step may have locked.
    CARGO_TARGET_DIR=$home/build CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --debug --locked --version "$3" --root "$home" "$2" || fail "cargo could not install $2"
    rm -rf "$home/build"
}

# free_port: a TCP port of the loopback interface that nothing uses right now.
free_port() {
    local port
    while :; do
        port=$((20000 + RANDOM % 12000))
        grep -qE "^ *[0-9]+: [0-9A-F]{8}:$(printf %04X "$port") " /proc/net/tcp || break
    done
    echo "$port"
}

# until_true SECONDS COMMAND...: run COMMAND until it succeeds; status 1 when it never did.
until_true() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.1
    done
}

# builtin_run [OPTION...]: the suites against the builtin responder, into $OUT/run. With a deviation, weft's status is 1.
builtin_run() {
    local want=0 status=0
    case " $* " in *" --deviate "*) want=1 ;; esac
    "$WEFT" test builtin --out "$OUT/run" "$@" >"$OUT/test.log" 2>&1 || status=$?
    [ "$status" = "$want" ] || { tail -20 "$OUT/test.log" >&2; fail "weft test builtin $*: status $status, not $want"; }
}
