/* A program that takes CPU time for ever in assembly written by hand, of which no table says where its caller is, and which uses
   the frame pointer for something else: three quarters of it called from `three`, a quarter from `one`. */
#include <stdio.h>
#include <unistd.h>

void spins(unsigned rounds);
__asm__(".text\n"
        ".globl spins\n"
        ".type spins, @function\n"
        "spins: push %rbp\n"
        "push %rbx\n"
        "xor %ebp, %ebp\n"
        "mov %edi, %ebx\n"
        "1: dec %ebx\n"
        "jnz 1b\n"
        "pop %rbx\n"
        "pop %rbp\n"
        "ret\n"
        ".size spins, . - spins\n");

static volatile unsigned result;
__attribute__((noinline)) void three(void) {
    spins(300000);
    result++;
}
__attribute__((noinline)) void one(void) {
    spins(100000);
    result--;
}

int main(void) {
    alarm(600);
    puts("ready");
    fflush(stdout);
    for (;;) {
        three();
        one();
    }
}
