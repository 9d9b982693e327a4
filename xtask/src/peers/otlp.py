"""Profiles of OpenTelemetry as its own generated classes read and write them.

    otlp.py read FILE   prints what stands in it as JSON, after a look at what must hold of every such document
    otlp.py make FILE   writes a document with two processes, inlined functions, a link, labels and two types of values
"""

import json
import sys

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.profiles.v1development import profiles_pb2 as otlp


def said(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [said(entry) for entry in value.array_value.values]
    return getattr(value, kind)


def read(path):
    data = otlp.ProfilesData()
    with open(path, "rb") as file:
        data.ParseFromString(file.read())
    words = data.dictionary
    assert words.string_table[0] == "", "the first string is not empty"
    for table in ("mapping", "location", "function", "link", "attribute", "stack"):
        rows = getattr(words, f"{table}_table")
        assert rows[0].ByteSize() == 0, f"the first entry of {table} is not empty"
        encoded = [row.SerializeToString(deterministic=True) for row in rows]
        assert len(set(encoded)) == len(encoded), f"{table} has an entry twice"
    assert len(set(words.string_table)) == len(words.string_table), "a string is there twice"
    return [profile(words, resource, scope, row)
            for resource in data.resource_profiles
            for scope in resource.scope_profiles
            for row in scope.profiles]


def text(words, index):
    return words.string_table[index]


def attributes(words, indices):
    found = {}
    for index in indices:
        row = words.attribute_table[index]
        key = text(words, row.key_strindex)
        assert key not in found, f"{key} is there twice"
        found[key] = [said(row.value), text(words, row.unit_strindex)]
    return found


def frame(words, index):
    location = words.location_table[index]
    mapping = words.mapping_table[location.mapping_index]
    lines = []
    for line in location.lines:
        function = words.function_table[line.function_index]
        lines.append([text(words, function.name_strindex), text(words, function.filename_strindex), line.line,
                      line.column])
    return {"lines": lines, "module": text(words, mapping.filename_strindex), "address": location.address,
            "attributes": attributes(words, location.attribute_indices)}


def profile(words, resource, scope, row):
    kind = [text(words, row.sample_type.type_strindex), text(words, row.sample_type.unit_strindex)]
    samples = []
    seen = set()
    for sample in row.samples:
        values, times = list(sample.values), list(sample.timestamps_unix_nano)
        assert values or times, "a sample says nothing"
        assert not (values and times) or len(values) == len(times), "values and times differ in number"
        identity = (sample.stack_index, frozenset(sample.attribute_indices), sample.link_index, bool(times))
        assert identity not in seen, "a sample is there twice"
        seen.add(identity)
        for time in times:
            assert row.time_unix_nano <= time < row.time_unix_nano + row.duration_nano, "a time is outside"
        stack = words.stack_table[sample.stack_index]
        samples.append({"frames": [frame(words, index) for index in stack.location_indices], "values": values,
                        "times": times, "attributes": attributes(words, sample.attribute_indices)})
    return {"resource": {pair.key: said(pair.value) for pair in resource.resource.attributes},
            "scope": scope.scope.name, "type": kind, "time": row.time_unix_nano,
            "duration": row.duration_nano, "period": row.period,
            "period_type": [text(words, row.period_type.type_strindex), text(words, row.period_type.unit_strindex)],
            "attributes": attributes(words, row.attribute_indices), "samples": samples}


def make(path):
    words = otlp.ProfilesDictionary()
    for table in ("mapping", "location", "function", "link", "attribute", "stack"):
        getattr(words, f"{table}_table").add()
    words.string_table.append("")

    def word(string):
        if string not in words.string_table:
            words.string_table.append(string)
        return list(words.string_table).index(string)

    def add(table, row):
        table.append(row)
        return len(table) - 1

    def function(name, file):
        return add(words.function_table, otlp.Function(name_strindex=word(name), filename_strindex=word(file)))

    def attribute(key, value, unit=""):
        row = otlp.KeyValueAndUnit(key_strindex=word(key), value=value, unit_strindex=word(unit))
        return add(words.attribute_table, row)

    library = add(words.mapping_table, otlp.Mapping(memory_start=0x1000, memory_limit=0x9000,
                                                    filename_strindex=word("libwork.so")))
    inner, outer = function("inlined", "/src/work.rs"), function("work", "/src/work.rs")
    work = otlp.Location(mapping_index=library, address=0x1234, lines=[
        otlp.Line(function_index=inner, line=7, column=3), otlp.Line(function_index=outer, line=40)])
    main = otlp.Location(lines=[otlp.Line(function_index=function("main", "/src/main.rs"), line=12)])
    unknown = otlp.Location(mapping_index=library, address=0x5678)
    work, main, unknown = (add(words.location_table, row) for row in (work, main, unknown))
    deep = add(words.stack_table, otlp.Stack(location_indices=[work, main]))
    shallow = add(words.stack_table, otlp.Stack(location_indices=[unknown, main]))
    span = add(words.link_table, otlp.Link(trace_id=bytes(range(16)), span_id=bytes(range(8))))
    thread = [attribute("thread.id", AnyValue(int_value=11)),
              attribute("thread.name", AnyValue(string_value="worker"))]
    size = attribute("allocation_size", AnyValue(int_value=128), "bytes")
    list_of = attribute("tags", AnyValue(array_value=ArrayValue(values=[
        AnyValue(string_value="a"), AnyValue(bool_value=True), AnyValue(double_value=1.5)])))
    cpu = otlp.ValueType(type_strindex=word("cpu"), unit_strindex=word("nanoseconds"))
    counts = otlp.ValueType(type_strindex=word("samples"), unit_strindex=word("count"))
    start = 1_700_000_000_000_000_000
    data = otlp.ProfilesData()
    first = data.resource_profiles.add()
    first.resource.attributes.append(KeyValue(key="process.pid", value=AnyValue(int_value=4711)))
    first.resource.attributes.append(KeyValue(key="service.name", value=AnyValue(string_value="shop")))
    scope = first.scope_profiles.add()
    scope.scope.name, scope.scope.version = "ebpf-profiler", "1"
    timed = scope.profiles.add(sample_type=counts, time_unix_nano=start, duration_nano=1_000_000_000, period=50_000_000)
    timed.period_type.CopyFrom(cpu)
    timed.samples.add(stack_index=deep, attribute_indices=thread, link_index=span,
                      timestamps_unix_nano=[start + 10, start + 30])
    timed.samples.add(stack_index=shallow, attribute_indices=[list_of], values=[2], timestamps_unix_nano=[start + 20])
    second = data.resource_profiles.add().scope_profiles.add()
    for kind, values in ((counts, [3, 4]), (cpu, [300, 400])):
        sums = second.profiles.add(sample_type=kind)
        sums.samples.add(stack_index=deep, attribute_indices=[size], values=values[:1])
        sums.samples.add(stack_index=shallow, values=values[1:])
    data.dictionary.CopyFrom(words)
    with open(path, "wb") as file:
        file.write(data.SerializeToString(deterministic=True))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2])
    else:
        json.dump(read(sys.argv[2]), sys.stdout)
