"""Prints the number of the current instruction of each frame that has called another, and waits."""

import sys


def numbers(frame):
    while frame:
        code = frame.f_code
        yield getattr(code, "_co_code_adaptive", code.co_code)[frame.f_lasti]
        frame = frame.f_back


def stop():
    # The frame of this function goes on.
    print("= instructions", *numbers(sys._getframe(1)), ".", sep="\n", flush=True)
    sys.stdin.readline()


class Caller:
    def method(self):
        stop()


def generator():
    yield Caller().method()


def main():
    for _ in range(20):
        list(generator())


main()
