#!/usr/bin/env bash
# Conversion and encoding against DuckDB 1.5.5, on the same events, on one core, in
# one run. Prints a table with ratios; quote those, not the absolute figures.
#
#   tests/bench/run.sh
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$here/../.."
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
export EVENTS_DIR="$work" GOMAXPROCS=1 CGO_ENABLED=0

cache="${XDG_CACHE_HOME:-$HOME/.cache}/managed-lakehouse/bench-duckdb-1.5.5"
if [ ! -x "$cache/bin/python" ]; then
    python3 -m venv "$cache"
    "$cache/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: duckdb==1.5.5
fi

cd "$root"
go test -count=1 -run TestBenchmarkEvents ./arrowconv >/dev/null
go test -c -o "$work/convert" ./arrowconv
go test -c -o "$work/encode" ./tests/bench
one=(); command -v taskset >/dev/null && one=(taskset -c 0)
"${one[@]}" "$work/convert" -test.run '^$' -test.bench 'Benchmark(Flat|Nested|StructuredFlat|StructuredNested)$' -test.benchtime 3s >"$work/go.txt"
"${one[@]}" "$work/encode" -test.run '^$' -test.bench Parquet -test.benchtime 3s >>"$work/go.txt"
"${one[@]}" "$cache/bin/python" "$here/compare.py" "$work"
