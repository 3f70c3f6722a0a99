"""Partitions: every value of its own, and engines that prune by them find each row."""

import json

import pyarrow as pa
import pytest

import engines
from conftest import assert_exact, assert_same_files, config

OPTIONS = """
partition_by: [k, "month(ts)", "bucket(4, id)", "truncate(2, o.s)"]
streaming: {enabled: true}
schema:
  - {name: ts, type: timestamptz}
"""
KEYS = ["a/b", "50%", "x:y", " lead", "é", "k=v", "", None, "null", "../up"]
TIMES = ["1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z", "2024-02-29T12:00:00Z", None]
SCHEMA = pa.schema([
    ("ts", pa.timestamp("us", "UTC")),
    ("id", pa.int64()),
    ("k", pa.string()),
    ("o", pa.struct([("s", pa.string())])),
])


@pytest.fixture(scope="module")
def partitioned(pipeline):
    rows = [
        {"id": i, "k": KEYS[i % len(KEYS)], "ts": TIMES[i // 3 % len(TIMES)], "o": {"s": f"é{i % 3}x"} if i % 7 else None}
        for i in range(200)
    ]
    for part in rows[:150], rows[150:]:
        pipeline.run(config(OPTIONS), [json.dumps(row) for row in part])
    return pipeline


@pytest.mark.parametrize("engine", engines.ALL)
def test_every_row(partitioned, engine):
    assert_exact(engine, partitioned.table(), partitioned.sent, SCHEMA)


def test_live_files(partitioned):
    assert_same_files(partitioned.table())


@pytest.mark.parametrize("engine", engines.ALL)
@pytest.mark.parametrize("key", [k for k in KEYS if k is not None])
def test_pruned_by_value(partitioned, engine, key):
    got = engines.read(engine, partitioned.table(), f"k = '{key}'")
    assert sorted(got["id"].to_pylist()) == [r["id"] for r in partitioned.sent if r.get("k") == key]


@pytest.mark.parametrize("engine", engines.ALL)
@pytest.mark.parametrize(
    "where, holds",
    [
        ("k IS NULL", lambda r: r.get("k") is None),
        ("id = 34", lambda r: r["id"] == 34),
        ("ts < '1970-01-01T00:00:00+00:00'", lambda r: (r.get("ts") or "2") < "1970"),
        ("ts >= '2024-02-29T12:00:00+00:00'", lambda r: (r.get("ts") or "0") >= "2024"),
        ("ts IS NULL", lambda r: r.get("ts") is None),
    ],
)
def test_pruned_by_transform(partitioned, engine, where, holds):
    got = engines.read(engine, partitioned.table(), where)
    assert sorted(got["id"].to_pylist()) == [r["id"] for r in partitioned.sent if holds(r)]


def test_pruning_reads_fewer_files(partitioned):
    table = engines.static_table(partitioned.table())
    every = len(list(table.scan().plan_files()))
    assert len(list(table.scan(row_filter="k = 'a/b'").plan_files())) < every / 5
    assert len(list(table.scan(row_filter="ts >= '2024-01-01T00:00:00+00:00'").plan_files())) < every / 2
