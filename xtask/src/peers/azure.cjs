// A server that speaks as Azure's blob storage does: Azurite, with a container called `fleet`.
// usage: node azure.cjs PORT FOLDER
'use strict';
const crypto = require('crypto');
const http = require('http');

const [port, folder] = process.argv.slice(2);
// The account that the storage's own documentation gives to emulators.
const account = 'devstoreaccount1';
const key = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

function container(done) {
    const date = new Date().toUTCString();
    const version = '2021-12-02';
    const path = `/${account}/fleet`;
    const headers = `x-ms-date:${date}\nx-ms-version:${version}\n`;
    const text = 'PUT' + '\n'.repeat(12) + headers + `/${account}${path}\nrestype:container`;
    const signature = crypto.createHmac('sha256', Buffer.from(key, 'base64')).update(text).digest('base64');
    const options = {
        host: '127.0.0.1', port, method: 'PUT', path: `${path}?restype=container`,
        headers: {
            'x-ms-date': date, 'x-ms-version': version, 'content-length': 0,
            authorization: `SharedKey ${account}:${signature}`,
        },
    };
    const request = http.request(options, (answer) => {
        answer.resume();
        answer.on('end', () => done(answer.statusCode));
    });
    request.on('error', () => setTimeout(() => container(done), 50));
    request.end();
}

process.argv = [process.argv[0], 'azurite-blob', '--blobHost', '127.0.0.1', '--blobPort', port,
    '--location', folder, '--silent', '--skipApiVersionCheck', '--disableTelemetry'];
require('azurite/dist/src/blob/main.js');
container((status) => console.log(status === 201 ? 'ready' : `cannot make the container: ${status}`));
