"""Stops in a function with local variables of all kinds, and prints them as Borehole shows them, in the order of their places.
The reader answers with a line."""

import os
import sys


class Thing:
    def __init__(self):
        self.hidden = "not shown"


THING = Thing()


def shown(value):
    """What is not written by `repr` alone."""
    if isinstance(value, Thing):
        return "<Thing at %#x>" % id(value)
    return repr(value)


def stop(lines):
    os.write(1, ("\n".join(lines + ["."]) + "\n").encode())
    os.read(0, 1)


def variables(argument, *rest, keyword=7, **others):
    none, yes, no = None, True, False
    small, negative, large, huge = 1, -12345678901, 2 ** 100, -2 ** 119 + 1
    number, infinite = 1.5, float("-inf")
    text, wide, wider = "it's", "größe", "☂ \U0001f600 line\nbreak"
    raw = b"a\x00\xff\n"
    pair, single, nested = (1, "two"), (None,), [[1], [2.0, []], {"k": (1,)}]
    long_list = list(range(20))
    by_name = {"one": 1, 2: None}
    several = {5}
    thing = THING
    captured = "seen by an inner function"

    def inner():
        return captured

    values = [
        ("argument", argument), ("keyword", keyword), ("rest", rest), ("others", others), ("none", none),
        ("yes", yes), ("no", no), ("small", small), ("negative", negative), ("large", large),
        ("huge", huge), ("number", number), ("infinite", infinite), ("text", text),
        ("wide", wide), ("wider", wider), ("pair", pair), ("single", single), ("nested", nested),
        ("by_name", by_name), ("several", several), ("thing", thing), ("captured", captured),
    ]
    lines = ["%s = %s" % (name, shown(value)) for name, value in values]
    # Written in another way than `repr` does.
    lines.append("raw = b\"a\\x00\\xff\\n\"")
    lines.append("long_list = [0, 1, 2, 3, 4, 5, 6, 7, ... 12 more]")
    lines.append("inner = <function at %#x>" % id(inner))
    stop(lines)
    return inner


variables("first", 2, 3, other="x")
sys.exit(0)
