/* A program that makes a function of its own, without unwind information, names it for profilers, and calls it for ever. */
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* mov %edi, %ecx; 1: dec %ecx; jnz 1b; ret */
static const unsigned char code[] = {0x89, 0xf9, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

static void (*volatile made)(unsigned);
__attribute__((noinline)) unsigned calls_made(unsigned rounds) {
    made(rounds);
    return rounds + 1;
}

int main(void) {
    char name[64];
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    made = (void (*)(unsigned))page;
    snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(name, "w");
    if (!map) return perror(name), 1;
    fprintf(map, "%lx %zx made_loop\n", (unsigned long)page, sizeof code);
    fclose(map);
    alarm(600);
    puts("ready");
    fflush(stdout);
    for (;;) calls_made(100000);
}
