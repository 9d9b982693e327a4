/* A program that takes CPU time in the function `work` of all libraries m0.so, m1.so, ... of a folder. Compiled as a library, it is
   one of them. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

unsigned work(unsigned x) {
    for (unsigned i = 0; i < 20000; i++) x = x * 1664525u + 1013904223u;
    return x;
}

int main(int count, char **arguments) {
    enum { MOST = 1000 };
    static unsigned (*works[MOST])(unsigned);
    char path[4096];
    int libraries = count > 2 ? atoi(arguments[2]) : 0;
    for (int i = 0; i < libraries && i < MOST; i++) {
        snprintf(path, sizeof path, "%s/m%d.so", arguments[1], i);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) return puts(dlerror()), 1;
        works[i] = (unsigned (*)(unsigned))dlsym(library, "work");
    }
    alarm(600);
    puts("ready");
    fflush(stdout);
    for (volatile unsigned x = 1;;)
        for (int i = 0; i < libraries && i < MOST; i++) x = works[i](x);
}
