"""DuckDB on the events that the Go benchmarks used, and the ratios."""

import pathlib
import re
import statistics
import sys
import time

import duckdb

work = pathlib.Path(sys.argv[1])
COLUMNS = {
    "flat": "{id: 'BIGINT', user_id: 'BIGINT', event_type: 'VARCHAR', value: 'DOUBLE', info: 'VARCHAR', ts: 'TIMESTAMPTZ'}",
    "nested": "{id: 'VARCHAR', ts: 'TIMESTAMPTZ', type: 'VARCHAR', seq: 'BIGINT',"
    " user: 'STRUCT(id BIGINT, name VARCHAR, email VARCHAR, verified BOOLEAN, created TIMESTAMPTZ)',"
    " device: 'STRUCT(os VARCHAR, version VARCHAR, model VARCHAR, screen STRUCT(w BIGINT, h BIGINT, dpr DOUBLE), battery DOUBLE)',"
    " geo: 'STRUCT(lat DOUBLE, lon DOUBLE, country VARCHAR, city VARCHAR, accuracy DOUBLE)',"
    " page: 'STRUCT(url VARCHAR, referrer VARCHAR, title VARCHAR, load_ms BIGINT)',"
    " items: 'STRUCT(sku VARCHAR, name VARCHAR, qty BIGINT, price DECIMAL(10,2), tags VARCHAR[])[]',"
    " scores: 'DOUBLE[]', session: 'VARCHAR', note: 'VARCHAR'}",
}


def median(f, runs=5):
    f()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


duck = {}
con = duckdb.connect()
con.execute("SET threads = 1; SET preserve_insertion_order = true")
for name, columns in COLUMNS.items():
    path = work / f"{name}.ndjson"
    rows = sum(1 for _ in path.open())
    source = f"read_json('{path}', format='newline_delimited', columns={columns})"
    # Counting every column has each of them parsed whole, and stores nothing.
    parse = median(lambda: con.execute(f"SELECT count(COLUMNS(*)) FROM {source}").fetchall())
    copy = median(lambda: con.execute(
        f"COPY (SELECT * FROM {source}) TO '{work / name}.parquet' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)"))
    duck[name, "parse"], duck[name, "copy"] = rows / parse / 1e6, rows / copy / 1e6

go = {}
for m in re.finditer(r"^Benchmark(\w+)\S*\s.*?([\d.]+) Mrows/s", (work / "go.txt").read_text(), re.M):
    go[m[1].split("-")[0]] = float(m[2])

print(f"DuckDB {duckdb.__version__}, one thread; millions of rows a second on one core\n")
print("| what | ours | DuckDB | ratio |\n|---|---|---|---|")
for title, ours, theirs in [
    ("JSON to Arrow, flat / read_json", "Flat", ("flat", "parse")),
    ("JSON to Arrow, nested / read_json", "Nested", ("nested", "parse")),
    ("structured to Arrow, flat / read_json", "StructuredFlat", ("flat", "parse")),
    ("structured to Arrow, nested / read_json", "StructuredNested", ("nested", "parse")),
    ("Arrow to Parquet, flat / whole COPY", "ParquetFlat", ("flat", "copy")),
    ("Arrow to Parquet, nested / whole COPY", "ParquetNested", ("nested", "copy")),
]:
    print(f"| {title} | {go[ours]:.2f} | {duck[theirs]:.2f} | {go[ours] / duck[theirs]:.2f} |")
