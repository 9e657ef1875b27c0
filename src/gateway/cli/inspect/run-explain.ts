/** `headgate explain`: why does this request wait, at which place, and for how long? */
import { type FoundWait, time } from '../../../observability/inspector/index.js';
import type { InspectArguments } from '../arguments.js';
import { askInspector } from './ask-inspector.js';

/** What each part that decides means for who waits. */
const causes: Readonly<Record<string, string>> = {
  priority: 'requests of higher bands go first',
  fairness: 'it is the turn of other tenants',
  ordering: 'other requests of its queue go first',
  cap: 'its tenant runs as much as it may at a time',
  gate: 'the model servers are full',
  endpoints: 'the servers or quotas that it may use have no room',
  pool: 'no model server can be had',
};

/** Resolves to the exit status: 1 when no request of that ID waits. @throws (rejects) FlowConfigError */
export async function runExplain({ id, url, json }: InspectArguments): Promise<number> {
  const found = (await askInspector(url, `view=find&id=${encodeURIComponent(id)}`)) as FoundWait;
  process.stdout.write(json ? `${JSON.stringify(found)}\n` : `${told(id, found)}\n`);
  return found.isWaiting ? 0 : 1;
}

function told(id: string, found: FoundWait): string {
  if (!found.isWaiting)
    return `No request ${id} waits. It runs, has ended (then the log has its line), or never came to this gateway.`;
  const { priority, waitedMs, decidedBy, why } = found;
  const clauses = why.replace(/(?<=; )about [^;]+/, 'likely to go in $&').split('; ');
  return `Request ${id} waits in band ${priority}, for ${time(waitedMs)} by now: ${causes[decidedBy]}.\n- ${clauses.join('\n- ')}`;
}
