/* Blocks in nested calls: a callback of the C library, frames of variable size and of their own alignment, and a handler of a signal. Says `ready` when
 * it does, and ends when its input does. Its second thread blocks too. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_barrier_t barrier;
static volatile char kept;

static __attribute__((noinline)) void wait_for_end(void) {
    char byte;
    pthread_barrier_wait(&barrier);
    puts("ready");
    fflush(stdout);
    while (read(0, &byte, 1) > 0) {
    }
    _exit(0);
}

static __attribute__((noinline)) void in_handler(int number) {
    kept = (char)number;
    wait_for_end();
    kept = 1;
}

static __attribute__((noinline)) void variable(size_t size) {
    /* The frame is aligned and of variable size: its caller is found by the frame pointer only. */
    char bytes[size] __attribute__((aligned(64)));
    memset(bytes, (int)size, size);
    kept = bytes[size / 2];
    raise(SIGUSR1);
    kept = bytes[size / 3];
}

static __attribute__((noinline)) void aligned(size_t size) {
    /* The frame begins at a multiple of 64, as those of vectors do: the stack pointer of its caller is in memory. */
    char bytes[64] __attribute__((aligned(64)));
    char more[size];
    memset(bytes, (int)size, sizeof bytes);
    memset(more, (int)size, size);
    kept = bytes[size % 64] + more[size / 2];
    variable(size);
    kept = bytes[(size + 1) % 64] + more[size / 3];
}

static __attribute__((noinline)) int compare(const void *left, const void *right) {
    aligned(1000 + (size_t)*(const int *)left);
    return *(const int *)left - *(const int *)right + kept;
}

static __attribute__((noinline)) int deep(int depth) {
    int numbers[2] = {2, 1};
    if (depth > 0) {
        return deep(depth - 1) + kept;
    }
    qsort(numbers, 2, sizeof *numbers, compare);
    return numbers[0];
}

static void *second(void *argument) {
    pthread_barrier_wait(&barrier);
    for (;;) {
        pause();
    }
    return argument;
}

int main(void) {
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, second, NULL);
    signal(SIGUSR1, in_handler);
    return deep(300);
}
