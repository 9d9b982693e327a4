/* A program that takes CPU time for ever: half of it in `compare`, which the C library calls, and half in `direct`, which it calls
   itself. Which of both is called is drawn, so that no sampler runs in step with it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile unsigned result = 1;
__attribute__((noinline)) unsigned spin(unsigned rounds, unsigned x) {
    for (unsigned i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u;
    return x;
}
__attribute__((noinline)) int compare(const void *one, const void *other) {
    result += spin(10000, result);
    return *(const int *)one - *(const int *)other;
}
__attribute__((noinline)) void direct(void) { result += spin(10000, result); }
__attribute__((noinline)) void search(void) {
    int key = 1, table[] = {1};
    if (!bsearch(&key, table, 1, sizeof key, compare)) abort();
}

int main(void) {
    alarm(600);
    puts("ready");
    fflush(stdout);
    for (unsigned drawn = 1;;) {
        drawn ^= drawn << 13;
        drawn ^= drawn >> 17;
        drawn ^= drawn << 5;
        if (drawn >> 31) search();
        else direct();
    }
}
