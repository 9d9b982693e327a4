"""Says how many samples Python's own writer takes in a second: of CPU time, or of all that has elapsed.

The samples are the first of a file, made into objects before the time counts.
"""

import sys
import time

import _remote_debugging as remote


class Enough(Exception):
    pass


class First:
    def __init__(self, count):
        self.count, self.samples = count, []

    def collect(self, interpreters, times_us=None):
        self.samples.extend((interpreters, time_us) for time_us in times_us)
        if len(self.samples) >= self.count:
            raise Enough


source, target, count, compression = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
clock = {"cpu": time.process_time, "elapsed": time.perf_counter}[sys.argv[5]]
first = First(count)
reader = remote.BinaryReader(source)
start_us = reader.get_info()["start_time_us"]
try:
    reader.replay(first)
except Enough:
    pass
begin = clock()
writer = remote.BinaryWriter(target, 1000, start_us, compression=compression)
for interpreters, time_us in first.samples:
    writer.write_sample(interpreters, time_us)
writer.finalize()
print(len(first.samples) / (clock() - begin))
