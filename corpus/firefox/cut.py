"""Cuts a profile that Firefox wrote down to what few samples need, by which it stays a profile of the same shape.

Usage: cut.py FROM TO
"""

import json
import sys

MOST_SAMPLES = 100


def rows(table, used, column, rename):
    """Keeps the rows of a table that are used, with a column renamed."""
    table["data"] = [table["data"][row] for row in used]
    for row in table["data"]:
        if row[column] is not None:
            row[column] = rename[row[column]]


def thread(thread):
    samples, stacks, frames = (thread[name] for name in ("samples", "stackTable", "frameTable"))
    samples["data"] = samples["data"][:MOST_SAMPLES]
    used = set()
    for sample in samples["data"]:
        stack = sample[0]
        while stack is not None and stack not in used:
            used.add(stack)
            stack = stacks["data"][stack][0]
    used = sorted(used)
    new_stack = {stack: index for index, stack in enumerate(used)}
    used_frames = sorted({stacks["data"][stack][1] for stack in used})
    new_frame = {frame: index for index, frame in enumerate(used_frames)}
    rows(stacks, used, 0, new_stack)
    for row in stacks["data"]:
        row[1] = new_frame[row[1]]
    for sample in samples["data"]:
        if sample[0] is not None:
            sample[0] = new_stack[sample[0]]
    markers = thread["markers"]
    markers["data"] = [marker[:5] for marker in markers["data"][:5]]
    texts = [frames["data"][frame][0] for frame in used_frames] + [marker[0] for marker in markers["data"]]
    new_text = {text: index for index, text in enumerate(sorted(set(texts)))}
    rows(frames, used_frames, 0, new_text)
    for marker in markers["data"]:
        marker[0] = new_text[marker[0]]
    thread["stringTable"] = [thread["stringTable"][text] for text in new_text]


def addresses(process):
    texts = (text for thread in process["threads"] for text in thread["stringTable"])
    return [int(text, 16) for text in texts if text.startswith("0x")]


def process(profile):
    for one in profile["threads"]:
        thread(one)
    used = addresses(profile)
    profile["libs"] = [lib for lib in profile["libs"] if any(lib["start"] <= at < lib["end"] for at in used)]
    profile["meta"]["markerSchema"] = []
    profile["profilingLog"] = {}
    for child in profile["processes"]:
        process(child)


with open(sys.argv[1]) as file:
    profile = json.load(file)
process(profile)
with open(sys.argv[2], "w") as file:
    json.dump(profile, file, separators=(",", ":"))
    file.write("\n")
