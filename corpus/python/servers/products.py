"""Multiplies matrices in threads until its input ends."""

import sys
import threading

import numpy

ended = []


def multiply():
    matrix = numpy.ones((200, 200))
    while not ended:
        matrix @ matrix


threads = [threading.Thread(target=multiply) for _ in range(int(sys.argv[1]))]
for thread in threads:
    thread.start()
print("ready", flush=True)
sys.stdin.read()
ended.append(True)
for thread in threads:
    thread.join()
