// The clients of the Model Context Protocol that its makers publish: what they say is what they printed.
//
//   inspect ADDRESS METHOD [NAME [KEY=VALUE...]]   asks over HTTP, by the inspector
//   inspect -- PROGRAM ARGUMENT... -- METHOD [NAME [KEY=VALUE...]]   asks a program on its standard input
//   conform ADDRESS SCENARIO                       plays a scenario of the conformance tests
'use strict';
const { spawnSync } = require('node:child_process');
const { mkdtempSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const path = require('node:path');

const home = path.join(__dirname, 'node_modules/@modelcontextprotocol');
const [verb, ...rest] = process.argv.slice(2);

const run = (script, args) => {
  // The conformance tests leave their results in the folder in which they run.
  const folder = mkdtempSync(path.join(tmpdir(), 'mcp-'));
  const done = spawnSync(process.execPath, [path.join(home, script), ...args], { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] });
  rmSync(folder, { recursive: true, force: true });
  process.exit(done.status ?? 1);
};

const asked = ([method, name, ...pairs]) => {
  const named = name === undefined ? [] : ['--tool-name', name];
  return ['--method', method, ...named, ...pairs.flatMap((pair) => ['--tool-arg', pair])];
};

if (verb === 'inspect' && rest[0] === '--') {
  const end = rest.indexOf('--', 1);
  run('inspector/clients/cli/build/index.js', [...rest.slice(1, end), ...asked(rest.slice(end + 1))]);
} else if (verb === 'inspect') {
  run('inspector/clients/cli/build/index.js', [rest[0], '--transport', 'http', ...asked(rest.slice(1))]);
} else if (verb === 'conform') {
  run('conformance/dist/index.js', ['server', '--url', rest[0], '--scenario', rest[1]]);
} else {
  console.error('expected inspect or conform');
  process.exit(2);
}
