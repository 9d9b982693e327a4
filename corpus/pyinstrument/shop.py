"""Writes shop.pyisession, and what pyinstrument says of it: the self time of each function in nanoseconds."""
import asyncio
import json
import math
import time

from pyinstrument import Profiler


class Shop:
    def order(self, lines):
        return sum(math.sqrt(line) for line in range(lines))

    @classmethod
    def open(cls):
        time.sleep(0.03)


async def wait():
    await asyncio.sleep(0.02)


def main():
    shop = Shop()
    for _ in range(6):
        shop.order(40_000)
    Shop.open()
    asyncio.run(wait())


def self_times(frame, own):
    for child in frame.children:
        if child.identifier == "[self]":
            name = f"{frame.class_name}.{frame.function}" if frame.class_name else frame.function
            own[name] = own.get(name, 0) + child.time
        else:
            self_times(child, own)
    return own


profiler = Profiler(interval=0.001)
profiler.start()
main()
session = profiler.stop()
session.save("shop.pyisession")
own = self_times(session.root_frame(trim_stem=False), {})
with open("shop.self.json", "w") as file:
    json.dump({name: round(time * 1e9) for name, time in sorted(own.items())}, file, indent=1)
