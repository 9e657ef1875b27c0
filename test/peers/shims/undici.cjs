// undici with `fetch` through `flowFetch`; all else is undici's own.
const { join } = require('node:path');
const { concurrencyDetector, FlowController } = require('headgate');
const { flowFetch } = require('headgate/fetch');
// It stands beside the shim only where that is put to use.
const undici = require(join(__dirname, 'index.peer.js'));

const flow = new FlowController({
  saturationDetector: concurrencyDetector({ maxConcurrency: 10_000 }),
  defaultRequestTtl: 0,
});
module.exports = { ...undici, fetch: flowFetch(flow, { fetch: undici.fetch }) };
