# Profiles of stackprof: of wall time and objects with stacks, of CPU time without.
require "stackprof"

def leaf(n)
  sum = 0
  n.times { |i| sum += i * i }
  sum
end

def branch(n) = leaf(n) + leaf(n / 2)

class Shop
  def order(n) = branch(n)
end

def work(seconds)
  finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
  Shop.new.order(20_000) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
end

StackProf.run(mode: :wall, interval: 5000, raw: true, out: "wall.dump") { work(0.6) }
StackProf.run(mode: :object, interval: 10, raw: true, out: "object.dump") do
  300.times { |i| [i.to_s, { i => i }] }
end
StackProf.run(mode: :cpu, interval: 2000, out: "plain.dump") { work(0.4) }
