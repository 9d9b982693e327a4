// Profiles ../v8/work.js while its events are traced: node --trace-event-categories v8,node,disabled-by-default-v8.cpu_profiler devtools.js
const { Session } = require('inspector');
const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.setSamplingInterval', { interval: 5000 });
session.post('Profiler.start', () => {
  require('../v8/work.js');
  session.post('Profiler.stop', (error, { profile }) => require('fs').writeFileSync('devtools.cpuprofile', JSON.stringify(profile)));
});
