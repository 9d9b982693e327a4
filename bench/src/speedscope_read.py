"""Reads a speedscope document and prints the weight of each stack."""

import json
import sys

document = json.load(sys.stdin)
names = [frame["name"] for frame in document["shared"]["frames"]]
sums = {}
for profile in document["profiles"]:
    for stack, weight in zip(profile["samples"], profile["weights"]):
        stack = tuple(stack)
        sums[stack] = sums.get(stack, 0) + weight
for stack, weight in sums.items():
    print(";".join(names[frame] for frame in stack), weight)
