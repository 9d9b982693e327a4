#include <stdlib.h>
#include <string.h>
static void *kept[4096]; static int count;
__attribute__((noinline)) void *small(int size) { void *block = malloc(size); memset(block, 1, size); return block; }
__attribute__((noinline)) void keep(int times) { for (int i = 0; i < times; i++) kept[count++] = small(100000); }
__attribute__((noinline)) void drop(int times) { for (int i = 0; i < times; i++) free(small(50000)); }
static volatile unsigned long sink;
__attribute__((noinline)) void hot(long n) { for (long i = 0; i < n; i++) sink = sink * 2862933555777941757UL + 3037000493UL; }
__attribute__((noinline)) void cold(long n) { for (long i = 0; i < n; i++) sink = sink ^ i * 7; }
int main(void) { for (int i = 0; i < 5; i++) { keep(100); drop(50); hot(30000000); cold(10000000); } return 0; }
