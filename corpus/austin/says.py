"""Prints what austin-python reads out of files of Austin: the values of each thread, and those of each leaf and function.

Usage: says.py FILE ...
"""

import json
import sys
from collections import Counter

from austin.format.collapsed_stack import AustinFileReader
from austin.format.mojo import MojoStreamReader


def samples(path):
    if path.endswith(".mojo"):
        with open(path, "rb") as file:
            reader = MojoStreamReader(file)
            events = list(reader)
    else:
        with open(path) as file:
            reader = AustinFileReader(file)
            events = list(reader)
    return [event for event in events if hasattr(event, "pid")], reader.metadata


def values(sample, mode):
    time, memory = sample.metrics.time or 0, sample.metrics.memory or 0
    busy = 0 if sample.idle else time
    return {"memory": [memory], "full": [time, busy, memory]}.get(mode, [time])


def says(path):
    found, metadata = samples(path)
    threads, leaves, functions = Counter(), Counter(), Counter()
    for sample in found:
        thread = sample.thread if not path.endswith(".mojo") else str(int(sample.thread, 16))
        frames = [(frame.filename, frame.function, frame.line, (frame.column or 0) - 1) for frame in sample.frames or ()]
        for column, value in enumerate(values(sample, metadata.get("mode"))):
            threads[f"{sample.pid} {sample.iid} {thread} {column}"] += value
            if frames:
                leaves[" ".join(map(str, (*frames[-1], column)))] += value
            for function in {frame[:2] for frame in frames}:
                functions[" ".join((*function, str(column)))] += value
    return {
        "samples": len(found),
        "collecting": sum(bool(sample.gc) for sample in found),
        "metadata": metadata,
        "threads": threads,
        "leaves": leaves,
        "functions": functions,
    }


for path in sys.argv[1:]:
    with open(f"{path}.json", "w") as output:
        json.dump(says(path), output, indent=1, sort_keys=True)
        output.write("\n")
