import threading, time, sys, subprocess, gc
def leaf(n):
    return sum(i * i for i in range(n))
def work(seconds, keep):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        leaf(4000)
        keep.append(bytearray(4096))
        gc.collect()
def sleep(seconds):
    time.sleep(seconds)
def main():
    keep = []
    seconds = 0.4
    threads = [threading.Thread(target=work, args=(seconds, keep)), threading.Thread(target=sleep, args=(seconds,))]
    for thread in threads: thread.start()
    if len(sys.argv) > 1:
        subprocess.run([sys.executable, __file__])
    for thread in threads: thread.join()
main()
