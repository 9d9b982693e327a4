"""Runs under scalene, which writes shop.json and lines.json."""
import math
import time


class Shop:
    def order(self, lines):
        return sum(math.sqrt(line) for line in range(lines))

    def stock(self):
        return [bytes(1000) for _ in range(40_000)]


def main():
    shop = Shop()
    end = time.process_time() + 0.35
    kept = []
    while time.process_time() < end:
        shop.order(100_000)
        kept.append(shop.stock())
        del kept[:-2]


main()
