// Functions of known shares, for V8's own profiler: node --cpu-prof work.js
'use strict'
function spin(rounds) { let x = 1; for (let i = 0; i < rounds; i++) x = (x * 1103515245 + i) >>> 0; return x }
function hot() { return spin(6e7) }
function cold() { return spin(2e7) }
const anonymous = [() => spin(1e7)]
class Shop { checkout() { return JSON.stringify(Array.from({ length: 2e5 }, (_, i) => ({ i }))).length } }
function recurse(depth) { return depth === 0 ? spin(1e7) : recurse(depth - 1) }
let sum = 0
for (let i = 0; i < 3; i++) sum += hot() + cold() + anonymous[0]() + new Shop().checkout() + recurse(5)
console.log(sum > 0)
