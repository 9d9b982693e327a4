const kept = [];
function fill(count) { for (let i = 0; i < count; i++) kept.push({ text: 'x'.repeat(100) + i, list: new Array(20).fill(i) }); }
function cache(name) { kept.push(Buffer.alloc(50000, name)); kept.push(new Array(5000).fill(name)); }
function main() { fill(4000); for (const name of ['a', 'b', 'c']) cache(name); (() => { fill(1000); })(); }
main();
