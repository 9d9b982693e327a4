"""Stops in tasks that others await, and prints the joined stack of the running task, and behind "~" that of each task that
waits and awaits no other. The reader answers each with a line, while this program waits in `stop`."""

import asyncio
import os
import sys
import threading

QUALIFIED = sys.version_info >= (3, 11)


def line_of(code, line):
    name = code.co_qualname if QUALIFIED else code.co_name
    return "%s\t%s\t%s" % (name, code.co_filename, line)


def marker(task):
    name = task.get_name()
    given = not (name.startswith("Task-") and name[5:].isdigit())
    return "<task %s>\t-\t-1" % name if given else "<task>\t-\t-1"


def waiting_frames(coroutine):
    """The frames in which a coroutine waits, the innermost first."""
    frames = []
    while coroutine is not None:
        for frame, awaited in (("cr_frame", "cr_await"), ("gi_frame", "gi_yieldfrom"), ("ag_frame", "ag_await")):
            if hasattr(coroutine, frame):
                frames.insert(0, getattr(coroutine, frame))
                coroutine = getattr(coroutine, awaited)
                break
        else:
            break
    return [line_of(frame.f_code, frame.f_lineno) for frame in frames]


def waiting(tasks):
    """The stack of the first of these tasks, each awaited by the next."""
    lines = []
    for task in tasks:
        lines += waiting_frames(task.get_coro()) + [marker(task)]
    return lines


def stop(construct, awaiters=(), others=()):
    running = asyncio.current_task()
    outermost = running.get_coro().cr_frame
    frame = sys._getframe()
    lines = ["= " + construct, line_of(frame.f_code, WAITS)]
    while frame is not outermost:
        frame = frame.f_back
        lines.append(line_of(frame.f_code, frame.f_lineno))
    lines += [marker(running)] + waiting(awaiters)
    for chain in others:
        lines += ["~"] + waiting(chain)
    lines.append(".")
    os.write(1, ("\n".join(lines) + "\n").encode())
    os.read(0, 1)


WAITS = stop.__code__.co_firstlineno + 13


def named(coroutine, name):
    task = asyncio.ensure_future(coroutine)
    task.set_name(name)
    return task


async def nested(depth, construct, awaiters=(), others=()):
    if depth > 0:
        return await nested(depth - 1, construct, awaiters, others)
    await asyncio.sleep(0)
    stop(construct, awaiters, others)


async def forever():
    await asyncio.get_event_loop().create_future()


async def through(depth, awaited):
    if depth > 0:
        return await through(depth - 1, awaited)
    return await awaited


async def direct(main):
    parent = None

    async def child():
        await nested(2, "awaited directly", [parent, main])

    async def wait():
        await through(3, named(child(), "child"))

    parent = named(wait(), "parent")
    await parent


async def gathered(main):
    tasks = []

    async def last():
        await asyncio.sleep(0)
        await nested(1, "gathered", [main], [[tasks[0], main], [tasks[1], main]])

    tasks += [named(forever(), "first"), named(forever(), "second"), named(last(), "third")]
    whole = asyncio.gather(*tasks)
    tasks[2].add_done_callback(lambda _: whole.cancel())
    try:
        await whole
    except asyncio.CancelledError:
        await asyncio.gather(*tasks, return_exceptions=True)


async def grouped(main):
    if not hasattr(asyncio, "TaskGroup"):
        return
    async with asyncio.TaskGroup() as group:
        other = group.create_task(forever(), name="waits in the group")

        async def last():
            await asyncio.sleep(0)
            await nested(1, "in a group", [main], [[other, main]])
            other.cancel()

        group.create_task(last(), name="runs in the group")


async def alone(main):
    async def unnamed():
        await nested(0, "awaited by nobody", [], [[main]])

    task = asyncio.ensure_future(unnamed())
    while not task.done():
        await asyncio.sleep(0.001)


async def main():
    main = asyncio.current_task()
    main.set_name("main ☂")
    await direct(main)
    await gathered(main)
    await grouped(main)
    await alone(main)
    stop("the outermost task")


def on_a_thread():
    loop = asyncio.new_event_loop()
    loop.run_until_complete(nested(1, "on a thread"))


thread = threading.Thread(target=on_a_thread)
thread.start()
thread.join()
asyncio.run(main())
