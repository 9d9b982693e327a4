"""Calls back and forth between Python and C, and has its stack printed by the module of C whose folder is given. Where a function is
called from Python without C between them, its name begins with `inlined`: since 3.11, the interpreter runs it in the same call."""

import functools
import sys

sys.path.insert(0, sys.argv[1])
import printer


def inlined_leaf():
    return printer.printed()


def reduced(left, right):
    return inlined_leaf() + left - right


def generated():
    yield functools.reduce(reduced, [1, 2])


def key(number):
    return sum(generated()) + number


def inlined_sort(numbers):
    return sorted(numbers, key=key)


def outer(numbers):
    return inlined_sort(numbers)


list(map(outer, [[1]]))
