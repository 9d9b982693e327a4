/* A program that waits for ever: three quarters of the time in `naps`, a quarter in `dozes`. With an argument, it waits for so many
   microseconds each time. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile long microseconds;
__attribute__((noinline)) int waits(long milliseconds) {
    struct timespec time = {0, microseconds ? microseconds * 1000 : milliseconds * 1000000};
    return nanosleep(&time, NULL) + 1;
}
__attribute__((noinline)) int naps(void) { return waits(30) + 1; }
__attribute__((noinline)) int dozes(void) { return waits(10) + 2; }
static volatile int result;

int main(int count, char **arguments) {
    microseconds = count > 1 ? atol(arguments[1]) : 0;
    alarm(600);
    puts("ready");
    fflush(stdout);
    for (;;) {
        result = naps();
        result = dozes();
    }
}
