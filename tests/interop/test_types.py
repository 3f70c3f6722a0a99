"""Every declared type, with its extremes, NULLs and nesting."""

import json

import pyarrow as pa
import pytest

import engines
from conftest import assert_exact, assert_same_files, config

OPTIONS = """
streaming: {enabled: true}
schema:
  - {name: id, type: long, required: true}
  - {name: b, type: boolean}
  - {name: i, type: int}
  - {name: l, type: long}
  - {name: f, type: float}
  - {name: d, type: double}
  - {name: dec, type: "decimal(38,10)"}
  - {name: small, type: "decimal(4,2)"}
  - {name: day, type: date}
  - {name: at, type: timestamptz}
  - {name: local, type: timestamp}
  - {name: s, type: string}
  - {name: bin, type: binary}
"""
SCHEMA = pa.schema([
    ("id", pa.int64()), ("b", pa.bool_()), ("i", pa.int32()), ("l", pa.int64()), ("f", pa.float32()), ("d", pa.float64()),
    ("dec", pa.decimal128(38, 10)), ("small", pa.decimal128(4, 2)), ("day", pa.date32()),
    ("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")), ("s", pa.string()), ("bin", pa.binary()),
])
ROWS = [
    {"b": True, "i": 2147483647, "l": 9223372036854775807, "f": 1.5, "d": 1.7976931348623157e308,
     "dec": "9999999999999999999999999999.9999999999", "small": "99.99", "day": "9999-12-31",
     "at": "9999-12-31T23:59:59.999999Z", "local": "9999-12-31T23:59:59.999999", "s": "𝄞 é \u0000 end", "bin": "AAECA/8="},
    {"b": False, "i": -2147483648, "l": -9223372036854775808, "f": -0.1, "d": 5e-324,
     "dec": "-9999999999999999999999999999.9999999999", "small": "-99.99", "day": "1900-01-01",
     "at": "1900-01-01T00:00:00.000001Z", "local": "1900-01-01T00:00:00.000001", "s": "", "bin": ""},
    {"b": None, "i": 0, "l": 0, "f": 3.4028234663852886e38, "d": -0.0, "dec": "-8.00", "small": "-5", "day": "1969-12-31",
     "at": "1969-12-31T23:59:59.999999Z", "local": "1969-12-31T23:59:59.999999", "s": " lead and trail "},
    {"at": "2024-02-29T12:00:00.123456+05:30", "d": 0.1, "s": "x" * 5000},
    {},
]


@pytest.fixture(scope="module")
def types(pipeline):
    pipeline.run(config(OPTIONS), [json.dumps({"id": i} | row) for i, row in enumerate(ROWS)])
    return pipeline


@pytest.mark.parametrize("engine", engines.ALL)
def test_every_value(types, engine):
    assert_exact(engine, types.table(), types.sent, SCHEMA)


def test_live_files(types):
    assert_same_files(types.table())


# Bounds of each type: a filter that must find exactly one row.
FILTERS = {
    "i = -2147483648": 1,
    "l = 9223372036854775807": 0,
    "dec < -9999999999": 1,
    "small < -99": 1,
    "s = ''": 1,
    "d = 0.1": 3,
}


@pytest.mark.parametrize("engine", engines.ALL)
@pytest.mark.parametrize("where", FILTERS)
def test_filters(types, engine, where):
    got = engines.read(engine, types.table(), where)
    assert got["id"].to_pylist() == [FILTERS[where]]
