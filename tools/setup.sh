#!/bin/sh
# Makes .venv ready: finds a Python, creates the environment, installs Hostler with the extras asked for.
#
#   tools/setup.sh demo|dev
#
# Does nothing (and needs no network) while the stamp in .venv matches the [build-system] and
# [project] tables of pyproject.toml; the other tables are settings of tools and install nothing.
set -eu
cd "$(dirname "$0")/.."

case "${1:-dev}" in
demo) extras=demo ;;
dev) extras=dev,demo ;;
*) echo "usage: tools/setup.sh demo|dev" >&2; exit 2 ;;
esac

suits() { # a Python in our range that can make environments with pip in them
    "$1" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null
}

find_python() {
    for name in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.14 python; do
        if suits "$name"; then command -v "$name"; return; fi
    done
    echo "hostler: needs Python 3.11 to 3.14 with venv and pip, and found none on PATH." >&2
    echo "hostler: on Debian or Ubuntu: apt-get install python3 python3-venv; or set PYTHON=/path/to/python3" >&2
    exit 1
}

digest() {
    .venv/bin/python - "$PWD" <<'PY'
import hashlib, json, sys, tomllib
with open("pyproject.toml", "rb") as file:
    tables = tomllib.load(file)
told = json.dumps([sys.argv[1], tables["build-system"], tables["project"]], sort_keys=True)
print(hashlib.sha256(told.encode()).hexdigest())
PY
}

if ! [ -x .venv/bin/python ] || ! suits .venv/bin/python; then
    python=$(find_python)
    echo "hostler: making .venv with $("$python" --version)" >&2
    rm -rf .venv
    "$python" -m venv .venv
fi

stamp=.venv/hostler-stamp
wanted=$(digest)
if [ -f "$stamp" ] && grep -qx "$wanted .*$extras" "$stamp"; then exit 0; fi

echo "hostler: installing into .venv (extras: $extras); the first time this takes a minute or two" >&2
log=.venv/hostler-install.log
if ! .venv/bin/python -m pip install --disable-pip-version-check --editable ".[$extras]" >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    echo "hostler: pip could not install; the whole story is in $log" >&2
    exit 1
fi
echo "$wanted $extras" >"$stamp"
