"""One plain form for a row, whichever engine read it and whoever sent it.

Numbers stay exact: integers as int, doubles in the shortest form that reads back,
decimals with every digit of their scale, instants in UTC with six digits. NULLs
are left out of rows and structs. Rows are compared as texts, in any order.
"""

import base64
import collections
import datetime as dt
import decimal
import json

import pyarrow as pa

EPOCH = dt.datetime(1970, 1, 1)


def text(row: dict) -> str:
    return json.dumps(row, sort_keys=True, ensure_ascii=False)


def plain(v):
    """The plain form of a value as pyarrow's to_pylist gives it."""
    match v:
        case None | bool() | int() | str():
            return v
        case float():
            return repr(v)
        case decimal.Decimal():
            return f"{v:f}"
        case dt.datetime():
            if v.tzinfo is None:
                return v.strftime("%Y-%m-%dT%H:%M:%S.%f").rjust(26, "0")
            return v.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
        case dt.date():
            return v.isoformat()
        case bytes():
            return base64.b64encode(v).decode()
        case dict():
            return {k: plain(x) for k, x in v.items() if x is not None}
        case list():
            if v and all(isinstance(x, tuple) for x in v):  # a map
                return sorted(([plain(k), plain(x)] for k, x in v), key=str)
            return [plain(x) for x in v]
    raise TypeError(f"no plain form for {v!r}")


def rows(table: pa.Table) -> list[dict]:
    """The rows of an engine's answer. Timestamps of every unit are brought to
    microseconds first; a value that is not exact there is an error."""
    return [plain(r) for r in normalised(table).to_pylist()]


def normalised(table: pa.Table) -> pa.Table:
    schema = pa.schema([pa.field(f.name, simple(f.type)) for f in table.schema])
    return table.cast(schema)


def simple(t: pa.DataType) -> pa.DataType:
    """The type without what engines choose freely: offsets' widths, views, units,
    names of inner fields, nullability."""
    if pa.types.is_struct(t):
        return pa.struct([pa.field(f.name, simple(f.type)) for f in t])
    if pa.types.is_map(t):
        return pa.map_(simple(t.key_type), simple(t.item_type))
    if pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_list_view(t) or pa.types.is_large_list_view(t):
        return pa.list_(simple(t.value_type))
    if pa.types.is_large_string(t) or pa.types.is_string_view(t):
        return pa.string()
    if pa.types.is_large_binary(t) or pa.types.is_binary_view(t):
        return pa.binary()
    if pa.types.is_timestamp(t):
        return pa.timestamp("us", "UTC" if t.tz else None)
    return t


def parse(lines) -> list[dict]:
    """NDJSON with every digit kept: nothing here goes through a double."""
    return [json.loads(line, parse_float=decimal.Decimal) for line in lines]


def conform(sent: list[dict], schema: pa.Schema) -> list[dict]:
    """What was sent, in plain form under the types that the table must have."""
    struct = pa.struct(list(schema))
    return [_conform(row, struct) for row in sent]


def _conform(v, t: pa.DataType):
    if v is None:
        return None
    if pa.types.is_struct(t):
        types = {f.name: f.type for f in t}
        out = {k: _conform(x, types[k]) for k, x in v.items()}
        return {k: x for k, x in out.items() if x is not None}
    if pa.types.is_list(t):
        return [_conform(x, t.value_type) for x in v]
    if pa.types.is_map(t):
        return sorted(([k, _conform(x, t.item_type)] for k, x in v.items()), key=str)
    if pa.types.is_boolean(t):
        assert isinstance(v, bool), v
        return v
    if pa.types.is_integer(t):
        assert int(v) == v, v
        return int(v)
    if pa.types.is_floating(t):
        f = float(v)
        if pa.types.is_float32(t):
            f = pa.scalar(f, pa.float32()).as_py()
        return plain(f)
    if pa.types.is_decimal(t):
        return f"{decimal.Decimal(v).quantize(decimal.Decimal(1).scaleb(-t.scale), context=decimal.Context(prec=38)):f}"
    if pa.types.is_timestamp(t):
        if isinstance(v, int):  # declared with unit: ms
            at = EPOCH + dt.timedelta(milliseconds=v)
            return plain(at.replace(tzinfo=dt.UTC) if t.tz else at)
        return plain(dt.datetime.fromisoformat(v))
    assert isinstance(v, str), v  # strings, dates, base64
    return v


def without_empty(v, t: pa.DataType):
    """A row in which no list of structs is empty: [] and NULL are the same."""
    if v is None:
        return None
    if pa.types.is_struct(t):
        types = {f.name: f.type for f in t}
        return {k: y for k, x in v.items() if (y := without_empty(x, types[k])) is not None}
    if pa.types.is_list(t):
        if pa.types.is_struct(t.value_type) and not v:
            return None
        return [without_empty(x, t.value_type) for x in v]
    return v


def difference(want: list[dict], got: list[dict], limit: int = 5) -> str:
    """Empty if both hold the same rows, as often; else some that differ."""
    w, g = collections.Counter(map(text, want)), collections.Counter(map(text, got))
    out = [f"{len(want)} expected, {len(got)} read"] if len(want) != len(got) else []
    out += [f"missing: {r}" for r in sorted((w - g).elements())[:limit]]
    out += [f"not expected: {r}" for r in sorted((g - w).elements())[:limit]]
    return "\n".join(out)
