// Opens a profile with the loader of Firefox Profiler, as its own command line program does.
//
//   node firefox.cjs load FILE      what the profiler says of it, as JSON: {"loaded": its threads} or {"error": TEXT}
//
// The program answers from a background process, which listens on a socket in its home when the profile is
// loaded. Here each call has a home and a background process of its own, and ends it.

'use strict'

const { execFileSync, spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')

const program = path.join(__dirname, 'node_modules', '@firefox-devtools', 'profiler-cli', 'dist', 'profiler-cli.js')
const SESSION = 'one'
const DEADLINE_MS = 60_000

function ask(env, ...words) {
  return execFileSync(process.execPath, [program, ...words, '--session', SESSION], { env, encoding: 'utf8', stdio: 'pipe' })
}

// Asking before the process has written its log makes the program take the session for a dead one.
async function answer(env, log, ended) {
  const end = Date.now() + DEADLINE_MS
  for (;;) {
    const text = fs.existsSync(log) ? fs.readFileSync(log, 'utf8') : ''
    if (text.includes('Profile loaded successfully')) return ask(env, 'thread', 'list', '--json', '--limit', '10000')
    if (/\berror\b|failed/i.test(text) || ended() || Date.now() > end) throw new Error(`not loaded: ${text}`)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

async function load(file) {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'firefox-profiler-'))
  const env = { ...process.env, HOME: home }
  const daemon = spawn(process.execPath, [program, '--daemon', path.resolve(file), '--session', SESSION], { env, stdio: 'ignore' })
  let exited = false
  daemon.on('exit', () => { exited = true })
  try {
    return JSON.parse(await answer(env, path.join(home, '.profiler-cli', `${SESSION}.log`), () => exited))
  } finally {
    if (!exited) daemon.kill()
    fs.rmSync(home, { recursive: true, force: true })
  }
}

const [command, file] = process.argv.slice(2)
if (command !== 'load' || !file) throw new Error('expected load FILE')
load(file).then(
  loaded => console.log(JSON.stringify({ loaded })),
  error => console.log(JSON.stringify({ error: String(error.stderr || error) })),
)
