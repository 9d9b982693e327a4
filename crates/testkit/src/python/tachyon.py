"""What Python's own profiler reads and writes, as JSON lines for tests.

read FILE...                what it says of each file, and every sample, or the error it ends with
write SPECIFICATIONS FILE... files of the samples that specifications list
load FILE...                what `pstats` makes of the statistics in each file
replay JOBS                 what the profiler's command line prints, for each list of arguments in a file
"""

import contextlib
import io
import json
import pstats
import sys

import _remote_debugging as remote


def say(value):
    print(json.dumps(value, separators=(",", ":")))


class Samples:
    """Takes what `replay` gives out, and says it."""

    def collect(self, interpreters, times_us=None):
        for interpreter in interpreters:
            for thread in interpreter.threads:
                frames = [self.frame(frame) for frame in thread.frame_info]
                for time_us in times_us:
                    say({
                        "tid": thread.thread_id, "iid": interpreter.interpreter_id, "status": thread.status,
                        "ts": time_us, "frames": frames,
                    })

    @staticmethod
    def frame(frame):
        place = (None,) * 4 if frame.location is None else tuple(frame.location)
        return [frame.filename, frame.funcname, *place, frame.opcode]


def read(path):
    try:
        reader = remote.BinaryReader(path)
        info = reader.get_info()
        say({"info": info})
        reader.replay(Samples())
        say({"stats": reader.get_stats()})
    except Exception as error:
        say({"error": f"{type(error).__name__}: {error}"})


def write(wanted, path):
    writer = remote.BinaryWriter(
        path, wanted["interval_us"], wanted["start_us"], compression=wanted["compression"],
        mode=wanted["mode"], capture_features=wanted["features"],
    )
    frames = [
        remote.FrameInfo((file, None if place is None else remote.LocationInfo(place), name, opcode))
        for file, place, name, opcode in wanted["frames"]
    ]
    for time_us, interpreter, thread, status, stack in wanted["samples"]:
        stack = [frames[index] for index in stack]
        thread = remote.ThreadInfo((thread, status, stack))
        writer.write_sample([remote.InterpreterInfo((interpreter, [thread]))], time_us)
    if wanted["statistics"] is not None:
        writer.set_stats(*wanted["statistics"])
    writer.finalize()


def load(path):
    """The rows in the order of their names: the order in the file is that of sets."""
    stats = pstats.Stats(path)
    rows = []
    for function, (direct, cumulative, direct_s, cumulative_s, callers) in stats.stats.items():
        callers = sorted([list(caller), count] for caller, count in callers.items())
        rows.append([list(function), direct, cumulative, direct_s, cumulative_s, callers])
    say(sorted(rows))


def replay(jobs):
    """One process for all: most of the time of a single replay is its start."""
    from profiling.sampling.cli import main

    with open(jobs) as file:
        jobs = json.load(file)
    for arguments in jobs:
        sys.argv = ["profiling.sampling", "replay", *arguments]
        printed, progress = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(progress):
            try:
                main()
                code = 0
            except SystemExit as end:
                code = end.code
        say({"printed": printed.getvalue(), "progress": progress.getvalue(), "code": code})


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    if command == "write":
        with open(paths.pop(0)) as file:
            for wanted, path in zip(json.load(file), paths, strict=True):
                write(wanted, path)
    else:
        for path in paths:
            {"read": read, "load": load, "replay": replay}[command](path)
