"""1,707 real events, as their publisher sent them."""

import pyarrow as pa
import pytest

import engines
from conftest import DATA, assert_exact, assert_same_files, config

D, L, S = pa.float64(), pa.int64(), pa.string()
SCHEMA = pa.schema([
    ("type", S),
    ("properties", pa.struct([
        ("mag", D), ("place", S), ("time", L), ("updated", L), ("tz", L), ("url", S), ("detail", S), ("status", S), ("tsunami", L), ("sig", L), ("net", S), ("code", S),
        ("ids", S), ("sources", S), ("types", S), ("nst", L), ("dmin", D), ("rms", D), ("gap", D), ("magType", S),
        ("type", S), ("title", S),
        # NULL in the first events: a column comes with its first typed value.
        ("felt", L), ("cdi", D), ("mmi", D), ("alert", S),
    ])),
    ("geometry", pa.struct([("type", S), ("coordinates", pa.list_(D))])),
    ("id", S),
])


@pytest.fixture(scope="module")
def quakes(pipeline):
    path = DATA / "earthquakes.ndjson"
    if not path.exists():
        pytest.skip("earthquakes.ndjson is not here: it does not come with the project")
    pipeline.run(config(), path.read_text(encoding="utf-8").splitlines(), timeout=120)
    return pipeline


@pytest.mark.parametrize("engine", engines.ALL)
def test_every_row(quakes, engine):
    assert_exact(engine, quakes.table(), quakes.sent, SCHEMA)


@pytest.mark.parametrize("engine", engines.ALL)
def test_figures(quakes, engine):
    count, mag, unfelt, latest = engines.sql(
        engine, quakes.table(),
        "SELECT count(*), sum(properties['mag']), sum(CASE WHEN properties['felt'] IS NULL THEN 1 ELSE 0 END),"
        " max(properties['time']) FROM t",
    )[0]
    sent = [e["properties"] for e in quakes.sent]
    assert count == 1707
    # Doubles add up in any order.
    assert mag == pytest.approx(float(sum(e["mag"] for e in sent if e["mag"] is not None)), rel=1e-12)
    assert unfelt == sum(e["felt"] is None for e in sent)
    assert latest == max(e["time"] for e in sent)


@pytest.mark.parametrize("engine", engines.ALL)
def test_coordinates(quakes, engine):
    got = engines.read(engine, quakes.table()).to_pylist()
    want = {e["id"]: [float(c) for c in e["geometry"]["coordinates"]] for e in quakes.sent}
    assert {e["id"]: e["geometry"]["coordinates"] for e in got} == want


def test_live_files(quakes):
    assert_same_files(quakes.table())


def test_one_commit(quakes):
    assert len(engines.static_table(quakes.table()).metadata.snapshots) == 1
