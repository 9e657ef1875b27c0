// @ts-check
// Tool calls of MCP servers behind one controller: a cap for each server and for each tenant. Calls wait where they would
// have failed, and whoever cancels a call by the protocol takes it out of the queue, or stops it.
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { CallToolRequestSchema, CallToolResultSchema, McpError } from '@modelcontextprotocol/sdk/types.js';
import { concurrencyDetector, EndpointPool, FlowControlError, FlowController, labelFilter } from 'headgate';

/** @typedef {import('headgate').FlowRequest & { server: string }} Call */

const pool = new EndpointPool();
for (const server of ['search', 'browser']) pool.add(server, { labels: { server } });

/** Two calls at a time on each server, of which one tenant has one at most. @type {FlowController<Call>} */
const flow = new FlowController({
  pool,
  saturationDetector: concurrencyDetector({ maxConcurrency: 2 }),
  endpointFilters: [labelFilter({ label: 'server' })],
  holBlocking: 'none',
  flows: () => ({ maxInFlight: 1 }),
});

/**
 * A server for one tenant, which hands calls of `server.tool` on to that server when they have a seat.
 * @param {string} tenant @param {Record<string, Client>} servers
 */
function toolsFor(tenant, servers) {
  const desk = new Server({ name: 'tools', version: '1.0.0' }, { capabilities: { tools: {} } });
  desk.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
    const [server = '', name = ''] = params.name.split('.');
    const client = servers[server];
    if (client === undefined) throw new McpError(-32602, `There is no server ${server}.`);
    const call = { byteSize: JSON.stringify(params).length, server, signal };
    try {
      const answer = await flow.run(call, { fairnessId: tenant, priority: 0 }, (lease) => {
        const stop = AbortSignal.any([signal, lease.signal]);
        return client.callTool({ ...params, name }, CallToolResultSchema, { signal: stop });
      });
      return answer;
    } catch (error) {
      if (!(error instanceof FlowControlError)) throw error;
      throw new McpError(-32000, error.message, { code: error.code, retryAfter: error.headers['retry-after'] });
    }
  });
  return desk;
}

/** @param {{ connect(transport: InMemoryTransport): Promise<void> }} server */
async function connected(server) {
  const client = new Client({ name: 'agent', version: '1.0.0' });
  const [here, there] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(there), client.connect(here)]);
  return client;
}

const figures = { running: 0, most: 0, stopped: 0 };

/** An MCP server that fails when it has more than two calls. */
function toolServer() {
  const server = new McpServer({ name: 'search', version: '1.0.0' });
  server.registerTool('find', { description: 'Takes 30 ms.' }, async ({ signal }) => {
    figures.running += 1;
    figures.most = Math.max(figures.most, figures.running);
    if (figures.running > 2) throw new Error('too many calls');
    try {
      await delay(30, undefined, { signal });
    } catch (error) {
      figures.stopped += 1;
      throw error;
    } finally {
      figures.running -= 1;
    }
    return { content: [{ type: 'text', text: 'found' }] };
  });
  return server;
}

const servers = { search: await connected(toolServer()) };
const agents = await Promise.all(['acme', 'hobby', 'team'].map((tenant) => connected(toolsFor(tenant, servers))));
/** @param {Client} agent @param {AbortSignal} [signal] */
const find = (agent, signal) => agent.callTool({ name: 'search.find' }, undefined, signal && { signal });

const results = await Promise.all(agents.flatMap((agent) => [find(agent), find(agent), find(agent)]));
assert.ok(results.every(({ isError }) => isError !== true));
assert.equal(figures.most, 2);
console.log(`nine calls of three tenants were all answered; at most ${figures.most} ran at a time.`);

const [acme] = /** @type {[Client]} */ (agents);
const [running, waiting] = [new AbortController(), new AbortController()];
const calls = Promise.allSettled([find(acme, running.signal), find(acme, waiting.signal)]);
while (flow.stats().waiting === 0) await delay(1);
waiting.abort();
while (flow.stats().waiting > 0) await delay(1);
assert.equal(figures.stopped, 0);
running.abort();
while (flow.stats().inFlight > 0) await delay(1);
await calls;
assert.equal(figures.stopped, 1);
console.log('a cancelled call left the queue; one that ran was stopped at its server, and gave its seat back.');
await flow.close();
