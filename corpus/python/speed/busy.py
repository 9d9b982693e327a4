"""Keeps threads busy at a known depth for some seconds, and prints how much they got done.

busy.py WORK THREADS DEPTH SECONDS, where WORK is `calls` (functions), `generators` (a stack of them) or `tasks` (so many tasks of
asyncio as THREADS says, each of which wakes up about once a second).
"""

import asyncio
import sys
import threading
import time


def leaf():
    total = 0
    for number in range(200):
        total += number * number
    return total


def calls(depth):
    return calls(depth - 1) if depth > 1 else leaf()


def generators(depth):
    if depth > 1:
        yield from generators(depth - 1)
    else:
        yield leaf()


WORK = {"calls": calls, "generators": lambda depth: next(generators(depth))}


def thread(work, depth, end, done):
    count = 0
    while time.monotonic() < end:
        for _ in range(50):
            work(depth)
        count += 50
    done.append(count)


async def task(place, end, done):
    while time.monotonic() < end:
        leaf()
        done[0] += 1
        await asyncio.sleep(0.5 + place)


async def tasks(count, end, done):
    await asyncio.gather(*(task(number / count, end, done) for number in range(count)))


def main():
    kind, threads, depth, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    begin = time.monotonic()
    end = begin + seconds
    done = []
    if kind == "tasks":
        done.append(0)
        asyncio.run(tasks(threads, end, done))
    else:
        # The main function, the thread's own frames and the leaf are part of the depth.
        started = [threading.Thread(target=thread, args=(WORK[kind], depth - 5, end, done)) for _ in range(threads)]
        for one in started:
            one.start()
        for one in started:
            one.join()
    print("ops_per_s=%.1f" % (sum(done) / (time.monotonic() - begin)), file=sys.stderr)


main()
