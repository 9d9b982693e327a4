"""Functions of known nesting, for programs that write trace events."""
import threading


def leaf(rounds):
    total = 0
    for value in range(rounds):
        total += value * value % 7
    return total


def middle(rounds):
    return leaf(rounds) + leaf(rounds // 2)


def worker():
    for _ in range(3):
        middle(60_000)


if __name__ == "__main__":
    thread = threading.Thread(target=worker, name="calls worker")
    thread.start()
    for _ in range(3):
        middle(100_000)
    thread.join()
