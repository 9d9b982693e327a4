"""Prints a speedscope document of so many threads with so many samples each, as json.dump writes it.

The rules for stacks and samples are those of lanes.rs.
"""

import json
import sys

threads, count, frame_count, stack_count, depth, period_ns = map(int, sys.argv[1:])


def frames_root_first(stack):
    return [((stack >> (depth - 1 - at)) * 7 + at * 25) % frame_count for at in range(depth)]


frames = [{"name": f"work{n}", "file": "/srv/app/work.py", "line": n + 1} for n in range(frame_count)]
stacks = [frames_root_first(stack) for stack in range(stack_count)]


def profile(thread):
    return {
        "type": "sampled",
        "name": f"thread {thread + 1}",
        "unit": "nanoseconds",
        "startValue": period_ns,
        "endValue": (1 + count) * period_ns,
        "samples": [stacks[(thread * 31 + n * 7 + n // 8 * 3) % stack_count] for n in range(count)],
        "weights": [period_ns] * count,
    }


document = {
    "$schema": "https://www.speedscope.app/file-format-schema.json",
    "shared": {"frames": frames},
    "profiles": [profile(thread) for thread in range(threads)],
}
json.dump(document, sys.stdout, separators=(",", ":"))
