package main

import (
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"
)

var kept [][]byte

//go:noinline
func keep(n int) { for i := 0; i < n; i++ { kept = append(kept, make([]byte, 100000)) } }

//go:noinline
func drop(n int) { for i := 0; i < n; i++ { _ = append([]byte(nil), make([]byte, 50000)...) } }

func main() {
	runtime.MemProfileRate = 4096
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	keep(50); drop(30)
	var lock sync.Mutex
	var group sync.WaitGroup
	for i := 0; i < 4; i++ {
		group.Add(1)
		go func() { defer group.Done(); for j := 0; j < 3; j++ { lock.Lock(); time.Sleep(2 * time.Millisecond); lock.Unlock() } }()
	}
	stop := make(chan bool)
	for i := 0; i < 3; i++ { go func() { <-stop }() }
	group.Wait()
	runtime.GC()
	for _, name := range []string{"heap", "goroutine", "block", "mutex", "threadcreate"} {
		for debug, end := range map[int]string{0: ".pb.gz", 1: ".txt"} {
			file, _ := os.Create(name + end)
			pprof.Lookup(name).WriteTo(file, debug)
			file.Close()
		}
	}
}
