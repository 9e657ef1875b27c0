/** Asks the inspector of a gateway that runs, as its page does, with the password of the environment. */
import { configError } from '../../../base/faults/flow-config-error.js';

/** A gateway that answers later than this has other troubles. */
const patienceMs = 5_000;

/** Why there is no answer, by its status, and what to do. */
const refusals: Readonly<Record<number, string>> = {
  401: 'the password of the inspector (inspector.password, or admin.token) in HEADGATE_PASSWORD',
  404: 'a gateway with the section `inspector`, at the port of operators (admin.port)',
  421: 'a name that stands in admin.hosts, or an address',
  429: 'no more than ten wrong passwords: wait a minute',
};

/** What the inspector at `url` answers to a query (`view=json`). @throws (rejects) FlowConfigError, with advice */
export async function askInspector(url: string, query: string): Promise<unknown> {
  if (!/^https?:/.test(url) || !URL.canParse(url))
    throw configError('--url', '', 'a URL such as http://127.0.0.1:9090', `"${url}"`);
  const at = new URL(url);
  if (at.pathname === '/') at.pathname = '/inspector';
  at.search = query;
  const authorization = `Basic ${Buffer.from(`:${process.env.HEADGATE_PASSWORD ?? ''}`).toString('base64')}`;
  const signal = AbortSignal.timeout(patienceMs);
  const answer = await fetch(at, { headers: { authorization }, signal }).catch((error: unknown) => {
    const { message } = Object(Object(error).cause ?? error);
    throw configError(url, '', 'a gateway that answers there (--url)', message || String(error));
  });
  if (answer.ok) return answer.json();
  throw configError(url, '', refusals[answer.status] ?? 'an answer', `status ${answer.status}`);
}
