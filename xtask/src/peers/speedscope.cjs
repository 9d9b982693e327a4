// Runs the importer of the speedscope release without a browser.
//
//   node speedscope.cjs import FILE      what the importer makes of a profile, as JSON
//   node speedscope.cjs validate FILE    whether a file fits the published JSON schema, as JSON
//
// The release is one script that draws a page. Its importer hangs on an object inside of it, told by the
// names of its functions, which stay readable; a hook lets that object out, and a page that answers
// anything with nothing lets the script start.

'use strict'

const fs = require('node:fs')
const path = require('node:path')
const vm = require('node:vm')

const release = path.join(__dirname, 'node_modules', 'speedscope', 'dist', 'release')
const HOOK = /([\w$]+)\(([\w$]+),\{importFromFileSystemDirectoryEntry:/

function releaseScript() {
  const name = fs.readdirSync(release).find(file => /^speedscope-.*\.js$/.test(file))
  if (!name) throw new Error(`no script of speedscope in ${release}`)
  const script = fs.readFileSync(path.join(release, name), 'utf8')
  const hook = HOOK.exec(script)
  if (!hook) throw new Error('the importer is not where it was in this version of speedscope')
  return `${script.slice(0, hook.index)}globalThis.importer=${hook[2]};${script.slice(hook.index)}`
}

// Any property, call or construction of it is again nothing.
function nothing() {
  return new Proxy(function () {}, {
    get: (_, key) => (key === Symbol.toPrimitive ? () => '' : key === 'then' ? undefined : nothing()),
    set: () => true,
    apply: () => nothing(),
    construct: () => nothing(),
  })
}

function page() {
  const silent = () => {}
  const page = {
    console: { log: silent, info: silent, warn: silent, error: silent, debug: silent },
    document: nothing(),
    navigator: { userAgent: 'node', platform: 'node' },
    location: { hash: '', protocol: 'file:', href: 'file:///' },
    localStorage: { getItem: () => null, setItem: silent },
    matchMedia: () => ({ matches: false, addListener: silent, addEventListener: silent }),
    addEventListener: silent,
    requestAnimationFrame: () => 0,
    devicePixelRatio: 1,
  }
  const kept = { TextDecoder, TextEncoder, setTimeout, clearTimeout, setInterval, clearInterval, URL, atob, btoa, performance }
  Object.assign(page, kept)
  page.window = page.self = page
  return vm.createContext(page)
}

async function importer() {
  const context = page()
  try {
    vm.runInContext(releaseScript(), context, { filename: 'speedscope.js' })
  } catch (error) {
    // Drawing the page fails at some point; what counts is whether the importer came out before that.
    if (!context.importer) throw error
  }
  await new Promise(resolve => setImmediate(resolve))
  return context.importer
}

async function importFile(file) {
  const bytes = fs.readFileSync(file)
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)
  const group = await (await importer()).importProfilesFromArrayBuffer(path.basename(file), buffer)
  if (!group) throw new Error('the importer does not know this format')
  return { name: group.name, profiles: group.profiles.map(describe) }
}

function describe(profile) {
  let frames = 0
  const self = {}
  profile.forEachFrame(frame => {
    frames += 1
    self[frame.name] = (self[frame.name] || 0) + frame.getSelfWeight()
  })
  return { name: profile.getName(), unit: profile.getWeightUnit(), total_weight: profile.getTotalWeight(), frames, self }
}

function validateFile(file) {
  const Ajv = require('ajv')
  const schema = JSON.parse(fs.readFileSync(path.join(release, 'file-format-schema.json'), 'utf8'))
  const validate = new Ajv({ strict: false, allErrors: true }).compile(schema)
  const valid = validate(JSON.parse(fs.readFileSync(file, 'utf8')))
  const errors = (validate.errors || []).slice(0, 20).map(error => `${error.instancePath} ${error.message}`)
  return { valid, errors }
}

async function main([verb, file]) {
  const verbs = { import: importFile, validate: validateFile }
  if (!verbs[verb] || !file) throw new Error('expected: import FILE or validate FILE')
  return verbs[verb](file)
}

main(process.argv.slice(2)).then(
  result => console.log(JSON.stringify(result)),
  error => {
    console.log(JSON.stringify({ error: String(error && error.message) }))
    process.exitCode = 1
  },
)
