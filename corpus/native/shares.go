// A program that takes CPU time for ever: three quarters of it in three, a quarter in one, ten calls deep. Which of both is called
// is drawn, so that no sampler runs in step with it. Both call nothing: the caller of such a function cannot be found in Go.
package main

import (
	"fmt"
	"time"
)

//go:noinline
func three(x uint32) uint32 {
	for i := 0; i < 30000; i++ {
		x = x*1664525 + 1013904223
	}
	return x
}

//go:noinline
func one(x uint32) uint32 {
	for i := 0; i < 10000; i++ {
		x = x*1664525 + 1013904223
	}
	return x
}

//go:noinline
func deep(depth int, x uint32) uint32 {
	if depth > 0 {
		return deep(depth-1, x) + 1
	}
	if x>>31 == 0 {
		return three(x) + 1
	}
	return one(x) + 2
}

var result uint32

func main() {
	fmt.Println("ready")
	drawn := uint32(1)
	for begun := time.Now(); time.Since(begun) < 10*time.Minute; {
		drawn ^= drawn << 13
		drawn ^= drawn >> 17
		drawn ^= drawn << 5
		result += deep(10, drawn)
	}
}
