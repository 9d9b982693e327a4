"""Computes in a task while a hundred others wait, until its input ends."""

import asyncio
import functools
import sys
import threading

ended = []


def compute():
    return sum(number * number for number in range(3000))


def named(coroutine, name):
    task = asyncio.ensure_future(coroutine)
    task.set_name(name)
    return task


async def busy():
    while not ended:
        compute()
        await asyncio.sleep(0)


async def wait():
    await asyncio.get_event_loop().create_future()


async def root():
    asyncio.current_task().set_name("root")
    working = named(busy(), "busy")
    tasks = [named(wait(), "waiter") for _ in range(100)]
    whole = asyncio.gather(working, *tasks)
    await asyncio.sleep(0.01)
    # Written once this task waits too.
    asyncio.get_event_loop().call_soon(functools.partial(print, "ready", flush=True))
    await whole


def read():
    sys.stdin.read()
    ended.append(True)


threading.Thread(target=read, daemon=True).start()
asyncio.run(root())
