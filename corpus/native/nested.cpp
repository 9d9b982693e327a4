// Blocks in nested calls: virtual ones, a callback of the standard library, and the handler of an exception. Says `ready` when it
// does, and ends when its input does.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {
struct Visitor {
    virtual ~Visitor() = default;
    virtual int visit(int depth) = 0;
};

[[gnu::noinline]] int wait_for_end(int number) {
    char byte;
    std::puts("ready");
    std::fflush(stdout);
    while (read(0, &byte, 1) > 0) {
    }
    _exit(number & 1);
}

struct Leaf : Visitor {
    int visit(int depth) override {
        std::vector<int> numbers{depth, 2, 1};
        std::function<bool(int, int)> less = [](int left, int right) { return wait_for_end(left) < right; };
        try {
            throw std::runtime_error("handled");
        } catch (const std::exception &) {
            std::sort(numbers.begin(), numbers.end(), less);
        }
        return numbers[0];
    }
};

struct Deeper : Visitor {
    std::unique_ptr<Visitor> inner;
    explicit Deeper(std::unique_ptr<Visitor> inner) : inner(std::move(inner)) {}
    int visit(int depth) override { return inner->visit(depth + 1) + 1; }
};
}

int main() {
    std::thread([] { for (;;) pause(); }).detach();
    std::unique_ptr<Visitor> visitor = std::make_unique<Leaf>();
    for (int depth = 0; depth < 50; depth++) visitor = std::make_unique<Deeper>(std::move(visitor));
    return visitor->visit(0);
}
