#include <pthread.h>
#include <string.h>
#include <stdlib.h>
static volatile unsigned long sink;
static inline __attribute__((always_inline)) unsigned long mix(unsigned long x){ for(int i=0;i<40;i++) x = x*2862933555777941757UL+3037000493UL; return x; }
__attribute__((noinline)) void hot(long n){ for(long i=0;i<n;i++) sink = mix(sink+i); }
__attribute__((noinline)) void cold(long n){ for(long i=0;i<n;i++) sink = mix(sink^i); }
static int compare(const void*a,const void*b){ return *(const int*)a - *(const int*)b; }
__attribute__((noinline)) void sorts(int times){ int v[4096]; for(int t=0;t<times;t++){ for(int i=0;i<4096;i++) v[i]=rand(); qsort(v,4096,sizeof *v,compare);} sink+=v[7]; }
static void* worker(void*p){ pthread_setname_np(pthread_self(),"sort worker 2"); sorts(120); hot(400000); return p; }
int main(void){ pthread_t t; pthread_create(&t,0,worker,0); for(int i=0;i<3;i++){ hot(1500000); cold(500000);} pthread_join(t,0); return 0; }
