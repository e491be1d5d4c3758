#!/bin/sh
# Makes .venv at the top of the project from envs/requirements.lock, and does nothing when it is there already.
#     sh envs/setup.sh                        from any folder
#     PYTHON=python3.12 sh envs/setup.sh      with a Python of your choice, 3.11 or newer
# pip's own settings (PIP_INDEX_URL, PIP_CERT, pip.conf ...) hold as usual.
set -eu

say() { printf 'setup: %s\n' "$*"; }
fail() { say "$@" >&2; exit 1; }
# A failing step's last lines are what a user needs to see, or to send to whoever can help.
show_log() { tail -n 12 "$log" | sed 's/^/    /' >&2; }

case ${PYTHON:-} in /* | '') ;; */*) PYTHON=$PWD/$PYTHON ;; esac
# The folder's physical name: reached by another link, the project is still in the same place.
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
cd "$root"
lock=envs/requirements.lock
stamp=.venv/setup.stamp
log=.venv/setup.log
# Packages of another Python would shadow those in .venv, and pip would take them for installed.
unset PYTHONPATH PYTHONHOME

# ---- is there anything to do?

# What a Python can load: its version, and the kind of machine.
kind() {
    "$1" -c 'import sys, sysconfig; print(sys.implementation.cache_tag, sysconfig.get_platform())' 2>/dev/null
}
# What .venv was made from. The folder belongs to it: the commands in .venv/bin hold absolute paths.
identity() { printf 'lock %s\npython %s\nfolder %s\n' "$(cksum <"$lock")" "$(kind .venv/bin/python)" "$root"; }
up_to_date() {
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(identity)" ] || return 1
    [ -z "${PYTHON:-}" ] || [ "$(kind "$PYTHON")" = "$(kind .venv/bin/python)" ]
}
done_already() { say "Nothing to do: .venv is up to date."; exit 0; }

[ -f "$lock" ] || fail "$root/$lock is missing; get a complete copy of the project."
if up_to_date; then done_already; fi

# Two setups at once would spoil each other's work. The lock is on an open file, so it ends with its holders.
if command -v flock >/dev/null 2>&1; then
    exec 9<"$lock"
    if ! flock -n 9 2>/dev/null; then
        say "Waiting for another setup of this folder to end ..."
        flock 9 2>/dev/null || :
        if up_to_date; then done_already; fi
    fi
fi

# ---- which Python?

version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }
# An activated .venv answers to "python3" too; the one it was made from stays when .venv is removed.
base() {
    "$1" -c 'import sys; print(sys._base_executable if sys.prefix != sys.base_prefix else sys.argv[1])' "$1"
}
find_python() {
    if [ -n "${PYTHON:-}" ]; then
        case $(version "$PYTHON") in
            3.1[1-9] | 3.[2-9][0-9]) base "$PYTHON" ;;
            '') fail "PYTHON=$PYTHON cannot be run; set PYTHON to a Python 3.11 or newer, or unset it." ;;
            *) fail "PYTHON=$PYTHON is Python $(version "$PYTHON"), but 3.11 or newer is needed;" \
                "set PYTHON to another, or unset it." ;;
        esac
        return
    fi
    # First those for which every package of the lock is on the index ready-made, the user's own choice at the head.
    for candidate in python3 python3.13 python3.12 python3.11; do
        case $(version "$candidate") in 3.1[1-3]) base "$candidate"; return ;; esac
    done
    for candidate in python3 python3.14; do
        case $(version "$candidate") in 3.1[4-9] | 3.[2-9][0-9]) base "$candidate"; return ;; esac
    done
    fail "Python 3.11 or newer was not found. Install it (Debian, Ubuntu: apt-get install python3 python3-venv)," \
        "or name it: PYTHON=/path/to/python3.12 sh envs/setup.sh"
}
python=$(find_python)

# ---- the virtual environment

trap 'say "Interrupted; run it again to finish." >&2; exit 130' INT TERM HUP

# Remade from nothing: a package that an interruption left half-written would pass for installed.
if [ -e .venv ]; then say "Replacing .venv: it is unfinished, or was made for another lock, Python or folder."; fi
{ rm -rf .venv && mkdir .venv && : >"$log"; } 2>/dev/null ||
    fail "Cannot write in $root; copy the project to a folder of your own, or have its owner run this."

# Debian's python3 comes without ensurepip, and often without pip: then pip itself, with a known checksum, from the
# index. A bare system has no certificates either; the checksum vouches for the file, whatever the connection.
fetch_pip() {
    "$python" - .venv <<'EOF'
import configparser, hashlib, html, http.client, os, pathlib, re, ssl, sys
import urllib.error, urllib.parse, urllib.request

NAME = "pip-26.3-py3-none-any.whl"
SHA256 = "f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13"

config = configparser.ConfigParser(interpolation=None)
places = ["/etc/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf", os.environ.get("PIP_CONFIG_FILE", "")]
config.read([os.path.expanduser(place) for place in places])
index = os.environ.get("PIP_INDEX_URL") or config.get("global", "index-url", fallback="https://pypi.org/simple")
cert = os.environ.get("PIP_CERT") or config.get("global", "cert", fallback=None)


def get(url):
    try:
        return urllib.request.urlopen(url, timeout=60, context=ssl.create_default_context(cafile=cert)).read()
    except urllib.error.URLError as error:
        if not isinstance(error.reason, ssl.SSLCertVerificationError):
            raise
        return urllib.request.urlopen(url, timeout=60, context=ssl._create_unverified_context()).read()


if "@" in index:
    sys.exit("the package index asks for a password, which only an installed pip can give")
page = index.rstrip("/") + "/pip/"
try:
    link = re.search(r'href="((?:[^"]*/)?%s[^"]*)"' % re.escape(NAME), get(page).decode())
    if link is None:
        sys.exit(f"{page} does not list {NAME}")
    wheel = get(urllib.parse.urljoin(page, html.unescape(link[1])))
except (OSError, ValueError, http.client.HTTPException) as error:
    sys.exit(f"cannot fetch {NAME} from {page}: {error}")
if hashlib.sha256(wheel).hexdigest() != SHA256:
    sys.exit(f"the checksum of {NAME} from {page} is wrong")
path = pathlib.Path(sys.argv[1], NAME)
path.write_bytes(wheel)
print(path)
EOF
}
make_venv() {
    "$python" -m venv .venv && return
    "$python" -m venv --without-pip .venv || return
    "$python" -m pip --python .venv/bin/python install --no-input --no-user pip && return
    wheel=$(fetch_pip) &&
        .venv/bin/python "$wheel/pip" install --no-input --no-user --no-index "$wheel" &&
        rm "$wheel"
}
described=$("$python" -c "import platform, sys; print(platform.python_version(), 'of', sys.prefix)")
say "Making .venv with Python $described ..."
if ! make_venv >>"$log" 2>&1; then
    show_log
    fail "Could not make .venv: see the lines above. On Debian and Ubuntu, 'apt-get install python3-venv' gives what" \
        "Python lacks here; elsewhere, name a complete Python: PYTHON=/path/to/python3.12 sh envs/setup.sh"
fi

# ---- the packages

say "Installing the packages of $lock: a minute, or some on a slow line (details: $log) ..."
if ! .venv/bin/python -m pip install --no-input --no-user -r "$lock" >>"$log" 2>&1 </dev/null; then
    show_log
    if grep -q 'No space left' "$log"; then
        fail "Installing the packages failed: the disk is full. .venv needs about 700 MB; make room and run it again."
    elif grep -qE 'connection broken|Could not fetch URL|Max retries|ReadTimeout|Connection(Reset)?Error' "$log"; then
        fail "Installing the packages failed: the package index cannot be reached. Check the network, or set" \
            "PIP_INDEX_URL (a mirror), HTTPS_PROXY or PIP_CERT as your site asks, and run it again."
    fi
    fail "Installing the packages failed: see the lines above. Every package is ready-made for Python 3.11 to 3.13" \
        "(PYTHON=python3.12 sh envs/setup.sh); for another Python, some need a C compiler."
fi

# Last of all: without its stamp, .venv never counts as done.
identity >"$stamp"
say "Done: .venv is ready."
