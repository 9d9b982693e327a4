"""Prints what `jfr print --json` reads out of a recording: for each kind of event its values by the method at the leaf, and by
thread.

Usage: says.py FILE > FILE.json
"""

import json
import re
import subprocess
import sys
from collections import Counter, defaultdict

FIELDS = {
    "jdk.ExecutionSample": None,
    "jdk.NativeMethodSample": None,
    "jdk.ObjectAllocationSample": "weight",
    "jdk.ObjectAllocationInNewTLAB": "tlabSize",
    "jdk.ObjectAllocationOutsideTLAB": "allocationSize",
    "jdk.JavaMonitorEnter": "duration",
    "jdk.JavaMonitorWait": "duration",
    "jdk.ThreadPark": "duration",
    "jdk.ThreadSleep": "duration",
    "jdk.JavaExceptionThrow": None,
}
CLASSES = ("objectClass", "monitorClass", "parkedClass", "thrownClass")


def nanoseconds(text):
    return round(float(re.fullmatch(r"PT([0-9.]+)S", text)[1]) * 1e9)


def method(frame):
    return frame["method"]["type"]["name"].replace("/", ".") + "." + frame["method"]["name"]


def main(path):
    printed = subprocess.run(
        ["jfr", "print", "--json", "--stack-depth", "64", "--events", ",".join(FIELDS), path],
        check=True,
        capture_output=True,
    )
    leaves, threads, classes = defaultdict(Counter), defaultdict(Counter), Counter()
    frames = 0
    for event in json.loads(printed.stdout)["recording"]["events"]:
        values, kind = event["values"], event["type"]
        field = FIELDS[kind]
        value = 1 if field is None else values[field]
        value = nanoseconds(value) if isinstance(value, str) else value
        stack = (values.get("stackTrace") or {}).get("frames") or []
        frames += len(stack)
        leaf = f"{method(stack[0])}:{max(stack[0]['lineNumber'], 0)}" if stack else ""
        leaves[kind][leaf] += value
        thread = values.get("sampledThread") or values.get("eventThread")
        name = f"{thread['osThreadId']} {thread['javaName'] or thread['osName']}" if thread else ""
        threads[kind][name] += value
        for name in CLASSES:
            if values.get(name):
                classes[values[name]["name"].replace("/", ".")] += 1
    said = {"frames": frames, "leaves": leaves, "threads": threads, "classes": classes}
    json.dump(said, sys.stdout, indent=1, sort_keys=True)
    print()


main(sys.argv[1])
