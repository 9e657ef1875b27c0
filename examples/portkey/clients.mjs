// The clients: each tenant sends through the OpenAI client what ../gateway/tenants.mjs has scheduled, when it is due,
// whatever became of earlier requests, and hangs up if the first token has not come in time.
import OpenAI from 'openai';

const filler = 'lorem ipsum dolor sit amet, '.repeat(1_000);
/** After the last arrival, ms: whatever has not ended by then is cut off. */
const drainMs = 10_000;

/** Portkey spreads requests over the servers by its own load balancer. */
function configOf(servers) {
  return {
    strategy: { mode: 'loadbalance' },
    targets: servers.map((url) => ({ provider: 'openai', custom_host: `${url}/v1`, api_key: 'none' })),
  };
}

/** @returns One record per request: tenant, due and waited (to the first token, ms), and what became of it. */
export async function play({ url, servers, arrivals }) {
  const client = new OpenAI({
    baseURL: `${url}/v1`,
    apiKey: 'none',
    maxRetries: 0,
    defaultHeaders: { 'x-portkey-config': JSON.stringify(configOf(servers)) },
  });
  const startedAtMs = performance.now();
  const end = new AbortController();
  const sent = [];
  for (const arrival of arrivals) {
    const earlyMs = startedAtMs + arrival.atMs - performance.now();
    if (earlyMs > 0) await new Promise((resolve) => setTimeout(resolve, earlyMs));
    sent.push(send(client, arrival, end.signal));
  }
  setTimeout(() => end.abort(), drainMs).unref();
  return Promise.all(sent);
}

async function send(client, { tenant, promptTokens, outputTokens }, end) {
  const sentAtMs = performance.now();
  const leave = new AbortController();
  const patience = setTimeout(() => leave.abort(), tenant.patienceMs);
  const record = { tenant, result: 'failed', firstTokenMs: undefined };
  try {
    const stream = await client.chat.completions.create(
      {
        model: 'default-model',
        messages: [{ role: 'user', content: filler.slice(0, promptTokens * 4) }],
        max_tokens: outputTokens,
        stream: true,
      },
      { headers: { 'x-tenant': tenant.id }, signal: AbortSignal.any([leave.signal, end]) },
    );
    for await (const { choices } of stream) {
      if (record.firstTokenMs === undefined && choices[0]?.delta.content) {
        record.firstTokenMs = performance.now() - sentAtMs;
        clearTimeout(patience);
      }
      if (choices[0]?.finish_reason) record.result = 'completed';
    }
  } catch (error) {
    if (!leave.signal.aborted && !end.aborted) record.result = error.status ? String(error.status) : 'failed';
  }
  if (leave.signal.aborted) record.result = 'gave up';
  else if (end.aborted && record.result === 'failed') record.result = 'unfinished';
  clearTimeout(patience);
  return record;
}
