"""Stops in every construct that has a stack of its own, and prints the stack: the function, the file and the line of each
frame, the leaf first. The reader answers each stack with a line, while this program waits in `stop`."""

import asyncio
import functools
import os
import sys
import threading

QUALIFIED = sys.version_info >= (3, 11)


def name_of(code):
    return code.co_qualname if QUALIFIED else code.co_name


def stop(construct):
    frame = sys._getframe()
    lines = ["= " + construct]
    here = frame
    while frame is not None:
        # This frame waits in the line that reads.
        line = WAITS if frame is here else frame.f_lineno
        lines.append("%s\t%s\t%s" % (name_of(frame.f_code), frame.f_code.co_filename, line))
        frame = frame.f_back
    lines.append(".")
    text = "\n".join(lines) + "\n"
    os.write(1, text.encode("utf-8", "surrogatepass"))
    os.read(0, 1)


WAITS = stop.__code__.co_firstlineno + 12


def nested():
    def inner():
        stop("nested function")
    inner()


def generator():
    yield 1
    stop("generator")
    yield 2


def delegating():
    yield from generator()


async def coroutine(depth):
    if depth > 0:
        await coroutine(depth - 1)
        return
    stop("coroutine")


async def async_generator():
    yield 1
    stop("async generator")


async def through_async_generator():
    async for _ in async_generator():
        pass
    stop("coroutine behind an async generator")


def decorated(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)
    return wrapper


class Class:
    stop("body of a class")

    def method(self):
        stop("method")

    @classmethod
    def of_class(cls):
        stop("class method")

    @property
    def attribute(self):
        stop("property")
        return 1

    @decorated
    def decorated(self):
        stop("decorated method")

    def __enter__(self):
        stop("enter of a context manager")

    def __exit__(self, *exception):
        stop("exit of a context manager")

    def __init__(self):
        stop("constructor")

    def __del__(self):
        stop("destructor")


def recursive(depth):
    if depth > 0:
        return recursive(depth - 1)
    stop("recursion")


def failing():
    try:
        raise ValueError
    except ValueError:
        stop("handling an exception")
    finally:
        stop("finally")


def comprehensions():
    [stop("list comprehension") for _ in range(1)]
    {stop("set comprehension") for _ in range(1)}
    {1: stop("dict comprehension") for _ in range(1)}
    list(stop("generator expression") for _ in range(1))


def long_lines(first, second,
               third):
    return (first,
            second,
            stop("a line far from the call") if
            third
            else 0)


def callbacks():
    sorted([1, 2], key=lambda value: value == 2 or stop("callback from C") or 0)
    functools.reduce(lambda one, other: stop("callback of reduce"), [1, 2])


def on_a_thread():
    thread = threading.Thread(target=recursive, args=(3,), name="worker")
    thread.start()
    thread.join()


def größe():
    stop("name of wide characters")


def ελληνικά():
    stop("name of wider characters")


def many_lines():
    # Lines that are further apart than one entry of the table of lines can say.
    if not QUALIFIED:
        pass
























































































































































    stop("a line far below")


def main():
    nested()
    list(generator())
    list(delegating())
    asyncio.run(coroutine(3))
    asyncio.run(through_async_generator())
    thing = Class()
    thing.method()
    Class.of_class()
    thing.attribute
    thing.decorated()
    with thing:
        pass
    del thing
    recursive(5)
    recursive(900)
    failing()
    comprehensions()
    long_lines(1, 2, 3)
    callbacks()
    on_a_thread()
    größe()
    ελληνικά()
    many_lines()
    exec(compile("def made():\n  stop('made by exec')\nmade()", "<made \udcff \U0001f600>", "exec"), dict(stop=stop))
    eval("stop('eval')")
    stop("function")


main()
