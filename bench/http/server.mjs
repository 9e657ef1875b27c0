// One server: `node server.mjs <framework> <plain|headgate>`. Tells its port to the parent, its CPU time (µs) when
// asked, and ends with it.
import { createServer } from 'node:http';
import express from 'express';
import Koa from 'koa';
import { concurrencyDetector, FlowController } from '../../dist/index.js';

const answer = JSON.stringify({ object: 'chat.completion', choices: [{ message: { content: 'hello' } }] });
const headers = { 'content-type': 'application/json' };
/** As a gateway would: the tenant from what authentication found out. */
const options = { classify: () => ({ fairnessId: 'tenant-a', priority: 0 }) };

const makeFlow = () => new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1000 }) });

const frameworks = {
  async node(isGated) {
    const handle = (_req, res) => res.writeHead(200, headers).end(answer);
    if (!isGated) return handle;
    const { flowControl } = await import('../../dist/node.js');
    const limit = flowControl(makeFlow(), options);
    return (req, res) => limit(req, res, () => handle(req, res));
  },
  async express(isGated) {
    const app = express();
    if (isGated) {
      const { flowControl } = await import('../../dist/express.js');
      app.use(flowControl(makeFlow(), options));
    }
    app.use((_req, res) => res.set(headers).send(answer));
    return app;
  },
  async koa(isGated) {
    const app = new Koa();
    if (isGated) {
      const { flowControl } = await import('../../dist/koa.js');
      app.use(flowControl(makeFlow(), options));
    }
    app.use((ctx) => {
      ctx.set(headers);
      ctx.body = answer;
    });
    return app.callback();
  },
};

const [framework, variant] = process.argv.slice(2);
const server = createServer(await frameworks[framework](variant === 'headgate'));
server.listen(0, '127.0.0.1', () => process.send(server.address().port));
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send(user + system);
});
process.on('disconnect', () => process.exit(0));
