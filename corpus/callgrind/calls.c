#include <stdlib.h>
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((noinline)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) int odd(int n);
__attribute__((noinline)) int even(int n) { return n == 0 ? 1 : odd(n - 1); }
__attribute__((noinline)) int odd(int n) { return n == 0 ? 0 : even(n - 1); }
__attribute__((noinline)) int sorts(int seed) { int v[64]; for (int i = 0; i < 64; i++) v[i] = (i * 7919 + seed) % 100; qsort(v, 64, sizeof *v, compare); return v[3]; }
__attribute__((noinline)) int first(int n) { return sorts(n) + fib(8); }
__attribute__((noinline)) int second(int n) { return sorts(n) + even(20); }
int main(void) { int sum = 0; for (int i = 0; i < 3; i++) sum += first(i) + second(i); return sum & 1; }
