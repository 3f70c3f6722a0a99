#!/usr/bin/env bash
# Pipelines through the built binary, read back by engines that are not ours.
# Makes its own Python environment, once for each set of versions, below the cache
# folder. Arguments go to pytest:
#
#   tests/interop/run.sh -k earthquakes
#
# MANAGED_LAKEHOUSE names a binary to test; without it one is built.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cache="${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/managed-lakehouse}"

key="$({ python3 --version; cat "$here/requirements.txt"; } | sha256sum | cut -c1-16)"
venv="$cache/interop-$key"
if [ ! -f "$venv/complete" ]; then
    rm -rf "$venv"
    mkdir -p "$cache"
    python3 -m venv "$venv"
    # Every version is in the file: nothing is left to be resolved, or built.
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary :all: -r "$here/requirements.txt"
    "$venv/bin/pip" check
    touch "$venv/complete"
fi

if [ -z "${MANAGED_LAKEHOUSE:-}" ]; then
    MANAGED_LAKEHOUSE="$cache/managed-lakehouse"
    (cd "$here/../.." && CGO_ENABLED=0 go build -o "$MANAGED_LAKEHOUSE" .)
fi
export MANAGED_LAKEHOUSE PYTHONDONTWRITEBYTECODE=1
exec "$venv/bin/python" -m pytest -p no:cacheprovider --rootdir "$here" "$here" "$@"
