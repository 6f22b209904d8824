#!/bin/sh
# Makes .venv with everything that Trawl and its tests need, once per change of the locked versions.
set -eu
cd "$(dirname "$0")/.."

fail() { printf '%s\n' "setup: $*" >&2; exit 1; }

PYTHON=${PYTHON:-python3}
command -v "$PYTHON" >/dev/null 2>&1 || fail "no $PYTHON found; install Python 3.11 or newer, or run: make PYTHON=/path/to/python3.11 …"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$PYTHON is $("$PYTHON" --version 2>&1), Trawl needs 3.11 or newer; run: make PYTHON=/path/to/python3.11 …"

STAMP=.venv/.installed
WANTED=$(cat requirements-dev.lock pyproject.toml | "$PYTHON" -c 'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())')
[ -f "$STAMP" ] && [ "$(cat "$STAMP")" = "$WANTED" ] && exit 0

if ! "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; then
    VERSION=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        apt-get update -qq && apt-get install -y -qq "python$VERSION-venv" >/dev/null
    else
        fail "the venv module is missing; install it first: sudo apt-get install python$VERSION-venv"
    fi
fi

echo "setup: installing Trawl into .venv (once, about a minute)"
[ -x .venv/bin/python ] && .venv/bin/python -c 'import pip' 2>/dev/null || "$PYTHON" -m venv --clear .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement requirements-dev.lock
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
printf '%s' "$WANTED" > "$STAMP"
