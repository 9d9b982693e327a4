"""Prints the frames that have called another while garbage is collected, and waits."""

import gc
import sys


def stop():
    # The frame of this function goes on.
    frame, names = sys._getframe(1), []
    while frame:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    print("= collecting", *names, ".", sep="\n", flush=True)
    sys.stdin.readline()


class Cycle:
    def __init__(self):
        self.itself = self

    def __del__(self):
        stop()


def collect():
    Cycle()
    gc.collect()


gc.disable()
collect()
