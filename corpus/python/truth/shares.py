"""Spends known shares of its CPU time in functions, and prints them when its input ends: the CPU time of each, in seconds."""

import sys
import threading
import time


def work(units):
    total = 0
    for number in range(units):
        total += number * number
    return total


def one(units):
    return work(units)


def three(units):
    return work(units)


def squares(units):
    for number in range(units):
        yield number * number


def in_generator(units):
    return sum(squares(units))


class Six:
    def method(self, units):
        return work(units)


def main():
    spent = {"one": 0.0, "three": 0.0, "in_generator": 0.0, "Six.method": 0.0}
    parts = [("one", one, 1000), ("three", three, 3000), ("in_generator", in_generator, 2000),
             ("Six.method", Six().method, 6000)]
    ended = []

    def wait():
        sys.stdin.read()
        ended.append(True)

    threading.Thread(target=wait, daemon=True).start()
    print("ready", flush=True)
    while not ended:
        for name, function, units in parts:
            # Asking for the time enters the kernel, where a thread is more likely to lose its CPU: seldom.
            start = time.thread_time()
            for _ in range(50):
                function(units)
            spent[name] += time.thread_time() - start
    for name, seconds in spent.items():
        print("%s\t%.6f" % (name, seconds))


main()
