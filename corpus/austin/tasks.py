"""Writes a stream of version 4 with tasks of asyncio by the writer of austin-python, in which no release of Austin writes yet."""

import sys

from austin.events import AustinFrame, AustinMetadata, AustinMetrics, AustinSample, AustinTask, AustinTaskReport
from austin.format.mojo import MojoStreamWriter

loop = AustinFrame("/usr/lib/python3.14/asyncio/base_events.py", "run_forever", 677, 677, 9, 25)
fetch = AustinFrame("/app/tasks.py", "fetch", 12, 13, 5, 20)
parse = AustinFrame("/app/tasks.py", "parse", 20, 20, 9, 14)


def sample(frames, running, reports, micros):
    tasks = (AustinTask(1, "Task-1", (fetch,)), AustinTask(2, "parser", (parse,)))
    metrics = AustinMetrics(time=micros)
    return AustinSample(7, 0, "1f", metrics, frames, None, None, tasks, reports, running)


with open(sys.argv[1], "wb") as file:
    writer = MojoStreamWriter(file)
    for name, value in (("austin", "4.1.0"), ("interval", "100"), ("mode", "wall")):
        writer.write(AustinMetadata(name, value))
    begun = (AustinTaskReport(1, "Task-1", (fetch,), None, 0), AustinTaskReport(2, "parser", (parse,), None, 0))
    writer.write(sample((loop, fetch), 1, begun, 100))
    writer.write(sample((loop, parse), 2, (), 120))
    writer.write(sample((loop,), None, (AustinTaskReport(1, "Task-1", (), (fetch,), 120),), 90))
