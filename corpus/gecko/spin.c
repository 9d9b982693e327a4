#include <time.h>
volatile unsigned long sum;
static inline __attribute__((always_inline)) void inner(unsigned long n) { for (unsigned long i = 0; i < n; i++) sum += i; }
__attribute__((noinline)) void one(void) { inner(300000); }
__attribute__((noinline)) void three(void) { inner(900000); }
int main(void) { clock_t end = clock() + CLOCKS_PER_SEC / 2; while (clock() < end) { one(); three(); } }
