// Opens a heap snapshot of V8 with memlab's parser.
//
//   node memlab.cjs FILE NAME...      what is in it, as JSON: how much, what holds the nodes of these names; or {"error": TEXT}
//
// The dominator of every node is said as well, in the order of the nodes: its id, or null.

'use strict'

const path = require('node:path')

// What the parser says while it reads goes nowhere.
const print = console.log
process.stdout.write = (write => (text, ...rest) => (text.startsWith('{') ? write.call(process.stdout, text, ...rest) : true))(process.stdout.write)

const core = path.join(__dirname, 'node_modules', '@memlab', 'core')
const parser = require(path.join(core, 'dist', 'lib', 'HeapParser')).default
const analysis = require(core).analysis

function seen(node) {
  const references = node.references.map(edge => [edge.type, edge.name_or_index, edge.toNode.id])
  const dominator = node.dominatorNode ? node.dominatorNode.id : null
  const { id, name, type, self_size, retainedSize } = node
  return { id, name, type, self_size, retained_size: retainedSize, dominator, references }
}

async function main([file, ...names]) {
  const heap = await parser.parse(file)
  analysis.preparePathFinder(heap)
  const found = []
  let sizes = 0
  const dominators = []
  heap.nodes.forEach(node => {
    sizes += node.self_size
    dominators.push(node.dominatorNode ? node.dominatorNode.id : null)
    if (names.includes(node.name)) found.push(seen(node))
  })
  return { nodes: heap.nodes.length, edges: heap.edges.length, self_sizes: sizes, dominators, found }
}

main(process.argv.slice(2))
  .catch(error => ({ error: String(error) }))
  .then(answer => print(JSON.stringify(answer)))
