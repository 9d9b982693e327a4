"""Recursion, functions that call each other in a circle, built-in functions, and several callers of one function."""


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def even(n):
    return True if n == 0 else odd(n - 1)


def odd(n):
    return False if n == 0 else even(n - 1)


def words(count):
    return sorted(str(number * 7919 % 1000) for number in range(count))


def first():
    return len(words(3000)) + fib(12)


def second():
    return len(words(1000)) + even(50) + odd(31)


def main():
    for _ in range(3):
        first()
        second()


main()
