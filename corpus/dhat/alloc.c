// Allocates in three functions, which free some of it, read some of it, and end at different times.
#include <stdlib.h>
#include <string.h>

static char *hold(size_t count, size_t bytes) {
    char *last = NULL;
    for (size_t index = 0; index < count; index++) {
        last = malloc(bytes);
        memset(last, 1, bytes / 2);
    }
    return last;
}

static long pass(size_t bytes) {
    char *block = calloc(1, bytes);
    long sum = 0;
    for (size_t index = 0; index < bytes; index++) sum += block[index];
    free(block);
    return sum;
}

int main(void) {
    char *kept = hold(10, 1000);
    long sum = 0;
    for (int round = 0; round < 20; round++) sum += pass(4096);
    char *more = hold(3, 64);
    free(kept);
    free(more);
    return (int)(sum & 1);
}
