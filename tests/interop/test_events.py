"""Web events: the shape that most users have, over several commits and two runs."""

import datetime as dt
import json
import random

import pyarrow as pa
import pytest

import engines
import plain
from conftest import assert_exact, assert_rows, assert_same_files, config

ROWS = 20_000
OPTIONS = """
streaming: {enabled: true, row_limit: 5000}
schema:
  - {name: amount, type: "decimal(12,2)"}
  - {name: at, type: timestamptz}
  - {name: day, type: date}
"""
SCHEMA = pa.schema([
    ("amount", pa.decimal128(12, 2)),
    ("at", pa.timestamp("us", "UTC")),
    ("day", pa.date32()),
    ("id", pa.int64()),
    ("kind", pa.string()),
    ("ok", pa.bool_()),
    ("score", pa.float64()),
    ("user", pa.struct([("name", pa.string()), ("geo", pa.struct([("lat", pa.float64()), ("lon", pa.float64())]))])),
    ("tags", pa.list_(pa.string())),
    ("items", pa.list_(pa.struct([("sku", pa.string()), ("qty", pa.int64())]))),
])
NAMES = ["Ada", "Zoë", "山田", "O'Brien", "", "🙂", "a/b%c d", "null", "línea\nnueva"]


def event(i: int, rnd: random.Random) -> dict:
    at = dt.datetime(2024, 1, 1) + dt.timedelta(microseconds=rnd.randrange(10**13))
    return {
        "id": 9007199254740993 + i,
        "kind": rnd.choice(["view", "click", "purchase"]),
        "ok": rnd.choice([True, False, None]),
        "score": rnd.choice([None, rnd.random() * 10 ** rnd.randint(-9, 9), float(i)]),
        "amount": rnd.choice([None, f"{rnd.randrange(-10**9, 10**9) / 100:.2f}"]),
        "at": at.isoformat(timespec="microseconds") + "Z",
        "day": at.date().isoformat(),
        "user": rnd.choice([None, {"name": rnd.choice(NAMES), "geo": rnd.choice([None, {"lat": rnd.uniform(-90, 90), "lon": -1.5}])}]),
        "tags": rnd.choice([None, [], ["a", None, "é"], [rnd.choice(NAMES)]]),
        "items": rnd.choice([None, [], [{"sku": "x", "qty": 1}, None, {"qty": rnd.randrange(100)}]]),
    }


@pytest.fixture(scope="module")
def events(pipeline):
    rnd = random.Random(7)
    lines = [json.dumps(event(i, rnd), ensure_ascii=bool(i % 2)) for i in range(ROWS)]
    pipeline.run(config(OPTIONS), lines[: ROWS // 2])
    pipeline.run(config(OPTIONS), lines[ROWS // 2 :])
    return pipeline


@pytest.mark.parametrize("engine", engines.ALL)
def test_every_row(events, engine):
    assert_exact(engine, events.table(), events.sent, SCHEMA)


@pytest.mark.parametrize("engine", engines.ALL)
def test_sums(events, engine):
    got = engines.sql(
        engine, events.table(),
        "SELECT count(*), sum(id - 9007199254740992), sum(amount), count(score), max(\"at\"), min(day), sum(CASE WHEN ok THEN 1 ELSE 0 END) FROM t",
    )[0]
    sent = events.sent
    amounts = [int(e["amount"].replace(".", "")) for e in sent if e["amount"]]
    want = (
        ROWS, sum(e["id"] - 9007199254740992 for e in sent), sum(amounts), sum(e["score"] is not None for e in sent),
        plain.plain(dt.datetime.fromisoformat(max(e["at"] for e in sent))),
        dt.date.fromisoformat(min(e["day"] for e in sent)), sum(e["ok"] is True for e in sent),
    )
    assert (got[0], int(got[1]), int(got[2] * 100), got[3], plain.plain(got[4]), got[5], int(got[6])) == want


def test_several_commits(events):
    assert len(engines.static_table(events.table()).metadata.snapshots) >= 4


def test_live_files(events):
    assert_same_files(events.table())


# Each filter is answered from statistics where they allow it; a wrong bound loses rows.
FILTERS = {
    "id = 9007199254740993": lambda e: e["id"] == 9007199254740993,
    "id >= 9007199254757000": lambda e: e["id"] >= 9007199254757000,
    "kind = 'purchase'": lambda e: e["kind"] == "purchase",
    "kind > 'view'": lambda e: e["kind"] > "view",
    "amount < -9000000.00": lambda e: e["amount"] is not None and float(e["amount"]) < -9_000_000,
    "ok IS NULL": lambda e: e["ok"] is None,
    "score >= 500000000": lambda e: e["score"] is not None and e["score"] >= 500_000_000,
}


@pytest.mark.parametrize("engine", engines.ALL)
@pytest.mark.parametrize("where", FILTERS)
def test_filters(events, engine, where):
    want = [e for e in events.sent if FILTERS[where](e)]
    got = engines.read(engine, events.table(), where)
    assert_rows(engine, got, want, SCHEMA)
