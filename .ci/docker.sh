# shellcheck shell=bash
# What the checks of the images share. Source it after lib.sh.

# The widest image that we hand out, compressed.
LIMIT_MB=60

# Containers use the proxies of this machine, if it has any. Docker knows these names of arguments.
proxies=()
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    [ -z "${!name:-}" ] || proxies+=(--build-arg "$name")
done

# need_docker: status 77 when there is no container engine.
need_docker() {
    docker info >/dev/null 2>&1 && return
    say "no container engine answers ('docker info' fails): not checked"
    exit 77
}

# lock_images [OPTION...]: hold the lock under which this user's CI runs make and remove images.
# Removing an image also removes the layers that a build beside it is about to reuse.
lock_images() {
    exec 9>"${TMPDIR:-/tmp}/weft-images-$(id -u).lock"
    flock "$@" 9
}
unlock_images() { exec 9>&-; }
