"""New fields at the top, in structs and in lists of structs, over three runs."""

import json

import pyarrow as pa
import pytest

import engines
from conftest import assert_exact, assert_same_files, config

RUNS = [
    [{"id": 1, "o": {"a": 1}, "l": [{"p": 1}], "late": None}, {"id": 2}],
    [{"id": 3, "o": {"a": 2, "b": "x", "c": {"d": True}}, "l": [{"p": 2, "q": 0.5}, None], "top": "new"}],
    [{"id": 4, "late": [1, 2], "o": {"c": {"e": "deep"}}}, {"id": 5, "top": None, "l": []}],
]
SCHEMA = pa.schema([
    ("id", pa.int64()),
    ("o", pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.struct([("d", pa.bool_()), ("e", pa.string())]))])),
    ("l", pa.list_(pa.struct([("p", pa.int64()), ("q", pa.float64())]))),
    ("top", pa.string()),
    ("late", pa.list_(pa.int64())),
])


@pytest.fixture(scope="module")
def evolved(pipeline):
    for run in RUNS:
        pipeline.run(config("streaming: {enabled: true}"), [json.dumps(row) for row in run])
    return pipeline


@pytest.mark.parametrize("engine", engines.ALL)
def test_every_row(evolved, engine):
    assert_exact(engine, evolved.table(), evolved.sent, SCHEMA)


def test_live_files(evolved):
    assert_same_files(evolved.table())
