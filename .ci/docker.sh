# shellcheck shell=bash
# Functions that the checks of the images share. Source this file after lib.sh.

# The maximum size of the compressed image.
LIMIT_MB=60

# Tags, labels, projects and folders have this number, because several runs may share a machine.
RUN=$$

# Containers use the proxies of this machine, if it has any. Docker predefines these arguments.
proxies=()
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    [ -z "${!name:-}" ] || proxies+=(--build-arg "$name")
done

# need_docker: skip the check if no container engine responds.
need_docker() {
    docker info >/dev/null 2>&1 && return
    skip "no container engine responds ('docker info' fails)"
}

# need_compose: set the array COMPOSE to the Compose command of this machine.
need_compose() {
    if docker compose version >/dev/null 2>&1; then
        COMPOSE=(docker compose)
    else
        command -v docker-compose >/dev/null || install_packages docker-compose
        COMPOSE=(docker-compose)
    fi
    note "Compose: ${COMPOSE[*]} $("${COMPOSE[@]}" version --short)"
}

# The prefix of the lock files. All runs of this user share them.
LOCKS=${TMPDIR:-/tmp}/weft-images-$(id -u)
# lock_images OPTION...: take the lock for builds (-s) or for the removal of images (-x).
# Removing an image also removes the layers that a build in another run is about to reuse.
lock_images() {
    exec 9>"$LOCKS.lock"
    flock "$@" 9
}
unlock_images() { exec 9>&-; }

# run_out: make an empty $OUT for this run alone. Remove the folders of earlier runs.
run_out() {
    local old
    mkdir -p "$OUT"
    for old in "$OUT"/*; do
        [ ! -e "$old" ] || [ -e "/proc/${old##*/}" ] || rm -rf "$old"
    done
    OUT=$OUT/$RUN
    mkdir "$OUT"
}

# Images that this run made, in the order of their removal.
made=()
projects=()
# remove_all: remove what this run created, and nothing else. Call it in a trap.
remove_all() {
    local container image prune=()
    for container in $(docker ps --all --quiet --filter "label=org.weft.run=$RUN"); do
        docker rm --force --volumes "$container" >/dev/null 2>&1 || true
    done
    [ ${#projects[@]} = 0 ] || compose down --volumes --timeout 2 >/dev/null 2>&1 || true
    # Some files belong to users of containers.
    if [ "$(id -u)" != 0 ] && [ ${#made[@]} != 0 ]; then
        docker run --rm --user 0 --entrypoint chown --volume "$OUT:/out" "${made[0]}" \
            -R "$(id -u):$(id -g)" /out >/dev/null 2>&1 || true
    fi
    if ! lock_images -x -w 100; then
        prune=(--no-prune)
        note 'another build uses the layers of this one; docker image prune removes them later'
    fi
    for image in "${made[@]}"; do
        docker image rm "${prune[@]}" "$image" >/dev/null 2>&1 || true
    done
    unlock_images
}

# build_image TAG ARGUMENT...: run docker build, with its output in a file. Set BUILT to the
# seconds. Set LOCK=no for a long build that shares no layers with other images.
build_image() {
    local tag=$1 begin=$SECONDS
    shift
    [ "${LOCK:-}" = no ] || lock_images -s
    docker build --force-rm "${proxies[@]}" --label "org.weft.run=$RUN" --tag "$tag" "$@" \
        >"$OUT/build.log" 2>&1 || { tail -n 40 "$OUT/build.log" >&2; fail 'docker build: see above'; }
    unlock_images
    made=("$tag" "${made[@]}")
    BUILT=$((SECONDS - begin))
}

# in_image OPTION... IMAGE ARGUMENT...: run docker run with the label of this run.
in_image() { docker run --label "org.weft.run=$RUN" "$@"; }

# expect STATUS COMMAND...: run COMMAND with its output in $OUT/output. Fail if it exits with
# another status.
expect() {
    local want=$1 status=0
    shift
    "$@" >"$OUT/output" 2>&1 || status=$?
    [ "$status" = "$want" ] ||
        { tail -20 "$OUT/output" >&2; fail "status $status, not $want: $*"; }
}

# folder NAME [OWNER]: make a folder below $OUT for a volume, and set FOLDER to it.
folder() {
    FOLDER=$OUT/$1
    mkdir "$FOLDER"
    chown_in "${2:-10001:10001}" "$FOLDER"
}
# chown_in OWNER PATH...: run chown as root of a container. The caller need not be root.
chown_in() {
    local owner=$1 path
    shift
    for path; do
        in_image --rm --user 0 --entrypoint chown --volume "$path:/path" "$IMAGE" -R "$owner" /path ||
            fail "cannot change the owner of $path"
    done
}

# owned_by OWNER FOLDER: fail unless FOLDER has files and OWNER owns all of them.
owned_by() {
    local others
    [ -n "$(find "$2" -mindepth 1 -type f -print -quit)" ] || fail "$2 has no files"
    others=$(find "$2" -mindepth 1 -printf '%U:%G %P\n' | grep -v "^$1 " | head -3) || true
    [ -z "$others" ] || fail "not all files in $2 belong to $1: $others"
}

# check_image IMAGE: check all features of the image that README.md and docs/ci.md document.
# WANT_CAPTURE=yes: fail if the binary cannot capture. WANT_PRELOAD=yes: fail without the library.
check_image() {
    IMAGE=$1
    check_libraries
    check_dissect
    check_capture
    check_statuses
    check_confined
    check_resume
    check_health
    check_compose
    check_size
}

# The binary needs only libraries of the slim image and libpcap, and the image has all of them.
check_libraries() {
    local container library needed
    container=$(docker create --label "org.weft.run=$RUN" "$IMAGE")
    docker cp "$container:/usr/local/bin/weft" "$OUT/weft" >/dev/null
    docker rm --volumes "$container" >/dev/null
    needed=$(readelf -d "$OUT/weft" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    for library in $needed; do
        case $library in
        ld-linux-x86-64.so.2 | ld-linux-aarch64.so.1 | libc.so.6 | libm.so.6 | libgcc_s.so.1) ;;
        libpcap.so.0.8) captures=yes ;;
        *) fail "the binary needs $library, which the image does not have" ;;
        esac
    done
    expect 0 in_image --rm --entrypoint ldd "$IMAGE" /usr/local/bin/weft
    ! grep 'not found' "$OUT/output" || fail "the image lacks a library of the binary"
    ! readelf -S "$OUT/weft" | grep -qE '\.(symtab|debug_info)' || fail "the binary is not stripped"
    expect 0 in_image --rm "$IMAGE" --version
    note "$(cat "$OUT/output"): needs ${needed//$'\n'/, }"
    if docker run --rm --entrypoint test "$IMAGE" -e /usr/lib/weft/libweft_preload.so; then
        expect 0 in_image --rm --entrypoint env "$IMAGE" \
            LD_PRELOAD=/usr/lib/weft/libweft_preload.so ls /
        ! grep -F ld.so "$OUT/output" || fail "the preload library does not load"
        note 'the preload library loads'
    elif [ "${WANT_PRELOAD:-}" = yes ]; then
        fail 'the image has no preload library'
    else
        note 'this image has no preload library'
    fi
}

check_dissect() {
    local capture=siw/rping-crc.pcap
    expect 0 in_image --rm "$IMAGE" dissect "/usr/local/share/weft/captures/$capture"
    grep -q 'MPA Request' "$OUT/output" || fail 'weft dissect prints no MPA Request'
    cp "$OUT/output" "$OUT/shipped"
    folder captures
    in_image --rm --interactive --volume "$FOLDER:/var/lib/weft" --entrypoint sh "$IMAGE" \
        -c 'cat >capture.pcap' <"captures/$capture" || fail 'user 10001 cannot write to its volume'
    expect 0 in_image --rm --volume "$FOLDER:/var/lib/weft" "$IMAGE" dissect capture.pcap
    cmp "$OUT/output" "$OUT/shipped" || fail 'weft dissect prints other lines for the same capture in a volume'
    note "dissect: $(wc -l <"$OUT/shipped") lines for $capture"
}

# target ADDRESS: write a target file for a responder, target.toml in $FOLDER.
target() {
    printf 'name = "target"\nkind = "tcp"\naddress = "%s"\nrole = "responder"\n' "$1" |
        in_image --rm --interactive --user 0 --volume "$FOLDER:/work" --workdir /work --entrypoint sh "$IMAGE" \
            -c 'cat >target.toml'
    chown_in "$(stat -c %u:%g "$FOLDER")" "$FOLDER"
}

listens_in() { docker logs "$1" 2>&1 | grep -qF ':7174'; }

# Capture live as root, if weft was built with libpcap.
check_capture() {
    local server
    if [ "${captures:-}" != yes ]; then
        [ "${WANT_CAPTURE:-}" != yes ] || fail 'the binary is built without libpcap'
        note 'this weft is built without libpcap: live capture is not checked'
        return
    fi
    expect 0 in_image --rm "$IMAGE" dissect -D
    grep -q '^[0-9]*\. lo ' "$OUT/output" || fail 'weft dissect -D does not list lo'
    # A responder runs in one container. Root in a second one captures on the shared loopback.
    server=$(in_image --detach --no-healthcheck "$IMAGE" serve --listen 127.0.0.1:7174)
    until_true 30 listens_in "$server" || fail 'weft serve does not listen'
    folder captured 0:0
    target 127.0.0.1:7174
    expect 0 in_image --rm --user 0 --network "container:$server" --volume "$FOLDER:/work" \
        --workdir /work "$IMAGE" test target.toml mpa/7.1.1-key --capture lo --out run
    docker stop --time 10 "$server" >/dev/null
    [ -n "$(find "$FOLDER/run/cases" -name evidence.pcapng -size +0 -print -quit)" ] ||
        fail 'test --capture leaves no captures'
    note 'dissect -D lists lo, and root captures on lo'
}

# The command of docs/ci.md exits with weft's status, and the caller owns the files.
check_statuses() {
    local user
    user=$(id -u):$(id -g)
    # Files of root prove little: use a user that neither this machine nor the image has.
    [ "$user" != 0:0 ] || user=12345:12346
    folder work "$user"
    as_caller() {
        in_image --rm --user "$user" --volume "$FOLDER:/work" --workdir /work "$IMAGE" "$@"
    }
    expect 0 as_caller test builtin --tier smoke --out run
    owned_by "$user" "$FOLDER"
    [ -s "$FOLDER/run/report.html" ] && [ -s "$FOLDER/run/junit.xml" ] || fail 'no reports'
    expect 1 as_caller test builtin --deviate mpa.accepts-wrong-key mpa/7.1.1-key --out deviating
    expect 2 as_caller test builtin --no-such-option
    # Port 9 of the container's own loopback: nothing listens there.
    target 127.0.0.1:9
    expect 3 as_caller test target.toml mpa/7.1.1-key --out closed
    owned_by "$user" "$FOLDER"
    note "the container exits with weft's status (0, 1, 2, 3); all files belong to $user"
}

# weft runs with a read-only root file system, without capabilities and network. It can only write
# to the volume.
check_confined() {
    folder confined
    confined() {
        in_image --rm --read-only --cap-drop ALL --security-opt no-new-privileges --network none \
            --volume "$FOLDER:/var/lib/weft" "$IMAGE" "$@"
    }
    expect 0 confined test builtin mpa ddp --out run
    expect 0 confined test builtin-tcp mpa/7.1.1-key --out tcp
    owned_by 10001:10001 "$FOLDER"
    note 'runs with a read-only root, without capabilities and without a network'
}

# results FOLDER FILE: write the verdicts of a run's store to FILE, as `CASE DURATION RESULT` lines.
results() {
    rm -rf "$OUT/store"
    mkdir "$OUT/store"
    # Read a copy: reading a store may change its files.
    cp "$1"/results.sqlite* "$OUT/store"
    python3 - "$OUT/store/results.sqlite" >"$2" <<'PYTHON'
import sqlite3
import sys

rows = sqlite3.connect(sys.argv[1]).execute(
    "SELECT case_key, duration_us, result FROM results WHERE verdict IS NOT NULL ORDER BY case_key"
)
for row in rows:
    print(*row)
PYTHON
}

# Kill a container in the middle of a run. After --resume, every verdict that the killed run
# recorded must be the same, with its duration. This shows that no case is lost and none ran twice.
check_resume() {
    local container killed total before after
    folder killed
    container=$(in_image --detach --no-healthcheck --volume "$FOLDER:/var/lib/weft" "$IMAGE" \
        test builtin-tcp mpa --tier full --out run)
    # Wait for 60 lines with a verdict.
    timeout 120 grep -m 60 -E '^ *pass +' >"$OUT/output" \
        < <(docker logs --follow "$container" 2>&1) || fail 'no 60 verdicts within two minutes'
    docker kill "$container" >/dev/null || fail 'the run ended before it could be killed'
    killed=$(docker wait "$container")
    docker logs "$container" >"$OUT/killed.log" 2>&1
    [ "$killed" = 137 ] || fail "the killed container has the status $killed"
    [ ! -e "$FOLDER/run/report.json" ] || fail 'the killed run has a report'
    results "$FOLDER/run" "$OUT/before"
    before=$(wc -l <"$OUT/before")
    # The run records each verdict before it prints it.
    [ "$before" -ge "$(grep -cE '^ *pass +' "$OUT/killed.log")" ] ||
        fail "the run printed more verdicts than the $before that it recorded"
    expect 0 in_image --rm --volume "$FOLDER:/var/lib/weft" "$IMAGE" \
        test builtin-tcp --resume --out run
    results "$FOLDER/run" "$OUT/after"
    after=$(wc -l <"$OUT/after")
    [ -z "$(comm -23 "$OUT/before" "$OUT/after")" ] ||
        fail 'verdicts of the killed run are lost, or their cases ran again'
    total=$(python3 - "$FOLDER/run/report.json" <<'PYTHON'
import json
import sys

results = json.load(open(sys.argv[1]))["results"]
keys = {json.dumps(result["key"], sort_keys=True) for result in results}
assert len(keys) == len(results), "a case is in the report twice"
print(len(results))
PYTHON
    ) || fail 'the report of the resumed run'
    [ "$total" = "$after" ] && [ "$before" -lt "$after" ] ||
        fail "$before verdicts, then $after in the store and $total in the report"
    # Now no case is left to resume.
    expect 2 in_image --rm --volume "$FOLDER:/var/lib/weft" "$IMAGE" \
        test builtin-tcp --resume --out run
    note "killed after $before of $total verdicts; --resume adds the others and repeats none"
}

# is_healthy CONTAINER: true if its health check passes.
is_healthy() { [ "$(docker inspect --format '{{.State.Health.Status}}' "$1")" = healthy ]; }

check_health() {
    local container begin status
    # Without a dashboard the check fails.
    expect 3 in_image --rm "$IMAGE" web --healthy
    folder dashboard
    expect 0 in_image --rm --volume "$FOLDER:/var/lib/weft" "$IMAGE" \
        test builtin mpa/7.1.1-key --out run
    begin=$SECONDS
    container=$(in_image --detach --volume "$FOLDER:/var/lib/weft:ro" --read-only --cap-drop ALL \
        "$IMAGE" web --store sqlite:///var/lib/weft/run/results.sqlite?immutable=1 --out run)
    until_true 120 is_healthy "$container" ||
        { docker logs "$container" >&2; fail 'the container does not turn healthy'; }
    note "healthy after $((SECONDS - begin)) s"
    docker stop --time 20 "$container" >/dev/null
    status=$(docker wait "$container")
    [ "$status" = 0 ] || fail "docker stop: the dashboard ends with the status $status"
}

# compose ARGUMENT...: run Compose in the folder of this run's copy of compose.yaml.
compose() {
    (cd "$OUT/compose" && "${COMPOSE[@]}" --project-name "weft-ci-$RUN" "$@")
}
# api PATH TOKEN: print a response of the dashboard. Status 22 if it rejects the request.
api() {
    curl --silent --show-error --fail --noproxy '*' --header "Authorization: Bearer $2" \
        "http://localhost:$PORT$1"
}
# runs_are OUTCOME...: true if the dashboard lists runs with these outcomes, newest first.
# shellcheck disable=SC2120
runs_are() {
    api /api/runs "$viewer" >"$OUT/runs.json" 2>"$OUT/api.err" && python3 - "$@" <<PYTHON
import json
import sys

runs = json.load(open("$OUT/runs.json"))["runs"]
found = [str((run.get("summary") or {}).get("exit_code")) for run in runs]
sys.exit(found != sys.argv[1:])
PYTHON
}

# Use compose.yaml as its header describes: PostgreSQL, the dashboard, and runs in the same store.
check_compose() {
    local viewer operator web service begin=$SECONDS run path
    random() { od -An -tx1 -N32 /dev/urandom | tr -d ' \n'; }
    viewer=$(random) operator=$(random)
    PORT=$(free_port)
    mkdir -p "$OUT/compose/lab/report"
    cp compose.yaml "$OUT/compose"
    printf 'viewer %s\noperator %s\n' "$viewer" "$operator" >"$OUT/compose/tokens"
    printf 'WEFT_STORE_PASSWORD=%s\nWEFT_IMAGE=%s\nWEFT_PORT=%s\n' "$(random)" "$IMAGE" "$PORT" \
        >"$OUT/compose/.env"
    chmod 600 "$OUT/compose/tokens" "$OUT/compose/.env"
    chown_in 10001:10001 "$OUT/compose/tokens" "$OUT/compose/lab"
    projects=("weft-ci-$RUN")
    compose up --detach --no-build >"$OUT/compose.log" 2>&1 ||
        { tail -20 "$OUT/compose.log" >&2; compose logs store >&2; fail 'compose up'; }
    web=$(compose ps --quiet web)
    until_true 120 is_healthy "$web" || { compose logs >&2; fail 'the dashboard is not healthy'; }
    for service in web store; do
        [ "$(docker inspect --format '{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}}' \
            "$(compose ps --quiet "$service")")" = 'true [ALL]' ] ||
            fail "the service $service has more rights than compose.yaml gives it"
    done
    expect 22 api /api/runs "$(random)"
    runs_are || { cat "$OUT/api.err" "$OUT/runs.json" >&2; fail 'an empty store lists runs'; }

    expect 0 compose run --rm -T test builtin --tier smoke
    expect 1 compose run --rm -T test builtin mpa/7.1.1-key --deviate mpa.accepts-wrong-key
    until_true 20 runs_are unexpected as-expected ||
        { cat "$OUT/api.err" "$OUT/runs.json" >&2; fail 'the dashboard does not list both runs'; }
    [ "$(compose exec -T store psql --username weft --tuples-only --no-align \
        --command 'SELECT count(*) FROM runs')" = 2 ] || fail 'PostgreSQL does not hold both runs'
    # The dashboard reads the evidence of a case in the folder that both containers share.
    run=$(sed 's/.*"runs":\[{[^}]*"id":"\([^"]*\)".*/\1/' "$OUT/runs.json")
    api "/api/runs/$run/cases" "$viewer" >"$OUT/cases.json" || fail "no cases of the run $run"
    path=$(python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["cases"][0]["path"])' "$OUT/cases.json")
    api "/runs/$run/evidence/pcapng/$path" "$viewer" >"$OUT/evidence.pcapng" ||
        fail "the dashboard has no evidence of $path"
    [ -s "$OUT/evidence.pcapng" ] || fail "the evidence of $path is empty"
    # The database requires its password.
    expect 2 compose run --rm -T -e PGPASSWORD=wrong test builtin mpa/7.1.1-key
    grep -qi password "$OUT/output" || fail 'the error for a wrong password does not name the password'
    compose down --volumes --timeout 10 >>"$OUT/compose.log" 2>&1 || fail 'compose down'
    projects=()
    note "Compose: both runs are in PostgreSQL and in the dashboard; $((SECONDS - begin)) s"
}

check_size() {
    local bytes
    bytes=$(docker save "$IMAGE" | gzip -c | wc -c)
    note "image: $(($(docker image inspect --format '{{.Size}}' "$IMAGE") / 1000000)) MB," \
        "$((bytes / 1000000)) MB compressed (limit $LIMIT_MB MB)"
    [ "$bytes" -lt $((LIMIT_MB * 1000000)) ] || fail "the image takes $bytes bytes compressed"
}

# check_action [ARGUMENT...]: run the shell steps of action.yml for a passing and a failing run.
# ARGUMENTs go to .ci/action.py, before the action's inputs. Needs PyYAML in $TOOLS.
check_action() {
    local status want out
    export GITHUB_WORKSPACE=$OUT/workspace GITHUB_STEP_SUMMARY=$OUT/summary.md
    mkdir "$GITHUB_WORKSPACE"
    for want in 0 1; do
        status=0 out=report-$want
        : >"$GITHUB_STEP_SUMMARY"
        "$TOOLS/bin/python" .ci/action.py "$@" target=builtin "out=$out" \
            arguments="mpa/7.1.1-key --tier smoke$([ "$want" = 0 ] ||
                echo ' --deviate mpa.accepts-wrong-key')" >"$OUT/action.log" 2>&1 || status=$?
        [ "$status" = "$want" ] ||
            { tail -20 "$OUT/action.log" >&2; fail "action.yml: status $status, not $want"; }
        grep -q "^step: Run the suites" "$OUT/action.log" || fail 'action.yml ran no suites'
        cmp "$GITHUB_STEP_SUMMARY" "$GITHUB_WORKSPACE/$out/summary.md" ||
            fail 'action.yml does not append the summary'
        [ -s "$GITHUB_STEP_SUMMARY" ] || fail 'the summary is empty'
        owned_by "$(id -u):$(id -g)" "$GITHUB_WORKSPACE"
    done
    # If weft rejects the target, there is no summary, and the step still exits with weft's status.
    status=0
    : >"$GITHUB_STEP_SUMMARY"
    "$TOOLS/bin/python" .ci/action.py "$@" target=missing.toml out=none \
        >"$OUT/action.log" 2>&1 || status=$?
    [ "$status" = 2 ] && [ ! -s "$GITHUB_STEP_SUMMARY" ] ||
        { tail -20 "$OUT/action.log" >&2; fail "action.yml, no such target: status $status"; }
    note "GitHub action: the steps exit with the statuses 0, 1 and 2, and append the summary"
    sed -n 's/^replaced: \(.*\)/the image of this check replaces the step "\1"/p' \
        "$OUT/action.log"
}
