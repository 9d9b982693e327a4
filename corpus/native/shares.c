/* A program that takes CPU time for ever: three quarters of it in `three`, a quarter in `one`, ten calls deep. With an argument, each
   round runs in a thread of its own. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) unsigned spin(unsigned rounds, unsigned x) {
    for (unsigned i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u;
    return x;
}
__attribute__((noinline)) unsigned three(unsigned x) { return spin(300000, x) + 1; }
__attribute__((noinline)) unsigned one(unsigned x) { return spin(100000, x) + 2; }
__attribute__((noinline)) unsigned deep(int depth, unsigned x) {
    return depth ? deep(depth - 1, x) + 1 : three(x) + one(x);
}
static volatile unsigned result = 1;
static void *in_thread(void *nothing) {
    for (int i = 0; i < 10; i++) result = deep(10, result);
    return nothing;
}

int main(int count, char **arguments) {
    (void)arguments;
    alarm(600);
    puts("ready");
    fflush(stdout);
    for (;;) {
        pthread_t thread;
        if (count < 2) in_thread(NULL);
        else if (!pthread_create(&thread, NULL, in_thread, NULL)) pthread_join(thread, NULL);
    }
}
