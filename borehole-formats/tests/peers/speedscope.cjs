// Prints as JSON what speedscope's own importer reads in a file, and whether its JSON schema accepts it.
//
//     node speedscope.cjs FILE
//
// The packages `speedscope` and `ajv` are looked up beside this script and in NODE_PATH. speedscope is
// published as a bundle for the browser; it runs here with stand-ins for a page, and its importer is the
// function that its bundle calls when a file is dropped on it.
'use strict'
const fs = require('fs')
const path = require('path')
const vm = require('vm')

const release = path.join(path.dirname(require.resolve('speedscope/package.json')), 'dist', 'release')

function loadImporter() {
  const bundle = fs.readdirSync(release).find(name => /^speedscope-.*\.js$/.test(name))
  let code = fs.readFileSync(path.join(release, bundle), 'utf8')
  const call = /async function (\w+)\((\w+),(\w+)\)\{return\(await \w+\)\.importProfileGroupFromText\(\2,\3\)\}/
  const found = call.exec(code)
  if (!found) throw new Error(`no importer found in ${bundle}`)
  code = code.replace(found[0], `globalThis.importText=${found[1]};${found[0]}`)
  // Anything that is asked of the page answers with itself.
  const anything = new Proxy(function () {}, {
    get: (target, key) => (key === Symbol.toPrimitive ? () => '' : key === 'length' ? 0 : anything),
    set: () => true,
    apply: () => anything,
    construct: () => anything,
  })
  const sandbox = { console: { log() {}, error() {}, warn() {} }, setTimeout, clearTimeout, URL, TextDecoder, TextEncoder, performance }
  for (const name of ['document', 'navigator', 'location', 'localStorage', 'history', 'matchMedia', 'addEventListener',
    'requestAnimationFrame', 'Element', 'HTMLElement', 'HTMLCanvasElement', 'Image', 'FileReader', 'Blob']) sandbox[name] = anything
  sandbox.window = sandbox.self = sandbox.globalThis = sandbox
  vm.createContext(sandbox)
  // Drawing the page fails at some point, after the importer is there.
  try { vm.runInContext(code, sandbox) } catch (error) { if (!sandbox.importText) throw error }
  if (!sandbox.importText) throw new Error('the importer was not set')
  return sandbox.importText
}

function schemaErrors(text) {
  const Ajv = require('ajv')
  const schema = JSON.parse(fs.readFileSync(path.join(release, 'file-format-schema.json'), 'utf8'))
  const validate = new (Ajv.default || Ajv)({ strict: false }).compile(schema)
  return validate(JSON.parse(text)) ? [] : validate.errors
}

function summary(profile) {
  const frames = {}
  profile.forEachFrame(frame => {
    frames[frame.name] = (frames[frame.name] || 0) + frame.getSelfWeight()
  })
  return { name: profile.getName(), unit: profile.getWeightUnit(), total: profile.getTotalWeight(), self: frames }
}

async function main(file) {
  const text = fs.readFileSync(file, 'utf8')
  const group = await loadImporter()(path.basename(file), text)
  if (!group) throw new Error('speedscope does not know this format')
  const result = { schemaErrors: schemaErrors(text), active: group.indexToView, profiles: group.profiles.map(summary) }
  process.stdout.write(JSON.stringify(result) + '\n', () => process.exit(0))
}

process.on('unhandledRejection', () => {})
main(process.argv[2]).catch(error => { console.error(String(error && error.stack || error)); process.exit(1) })
