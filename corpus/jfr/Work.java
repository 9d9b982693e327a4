import java.util.*;
import java.util.concurrent.locks.*;

public class Work {
    static final Object lock = new Object();
    static volatile long sink;
    static long hot(int n) { long s = 0; for (int i = 0; i < n; i++) s += Math.floorMod(s * 31 + i, 1009); return s; }
    static void allocate() { List<byte[]> kept = new ArrayList<>(); for (int i = 0; i < 200; i++) kept.add(new byte[4096 + i]); sink += kept.size(); byte[] big = new byte[3_000_000]; sink += big.length; }
    static void fail(int i) { try { if (i % 50 == 0) throw new IllegalStateException("no " + i); } catch (IllegalStateException e) { sink++; } }
    static void held() { synchronized (lock) { try { Thread.sleep(25); } catch (InterruptedException e) { } } }
    static void run(long until) { int i = 0; while (System.nanoTime() < until) { sink += hot(200_000); allocate(); fail(i++); if (i % 20 == 0) held(); } }
    public static void main(String[] args) throws Exception {
        long until = System.nanoTime() + 2_000_000_000L;
        Thread one = new Thread(() -> run(until), "worker-one");
        Thread two = new Thread(() -> run(until), "worker-two");
        Thread parked = new Thread(() -> { while (System.nanoTime() < until) LockSupport.parkNanos(40_000_000); }, "parker");
        one.start(); two.start(); parked.start();
        Object monitor = new Object();
        synchronized (monitor) { monitor.wait(60); }
        one.join(); two.join(); parked.join();
    }
}
