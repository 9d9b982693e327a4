"""Blocks in nested calls of Python and of C. Says `ready` when it does, and ends when its input does."""

import functools
import os


def wait_for_end(left, right):
    print("ready", flush=True)
    while os.read(0, 1):
        pass
    os._exit(0)


class Key:
    def __init__(self, number):
        self.number = number

    def __lt__(self, other):
        return wait_for_end(self.number, other.number) < 0


def generated():
    yield 1
    yield len(sorted([Key(2), Key(1)]))


def reduced(total, number):
    return total + sum(generated())


def main():
    print(functools.reduce(reduced, [1, 2]))


main()
