/**
 * What a client sees: status, reason header and body of a drop under the `llm-d` contract, and the headers of requests.
 */
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { expect } from 'vitest';
import {
  agentIdentity,
  bandHeadroomHeader,
  fairnessIdHeader,
  type HttpErrorResponse,
  headerValue,
  modelNameRewriteHeader,
  objectiveHeader,
  queueDurationHeader,
  sloTpotHeader,
  sloTtftHeader,
  systemOwnedHeaders,
  toHttpResponse,
} from '../../../src/adapters/http/index.js';
import { flowControl } from '../../../src/adapters/node/index.js';
import type { AdmissionPolicy, Drop, EndpointFilter, Lease } from '../../../src/index.js';
import { codesForMessage, dropFrom, errorChainOf, statusOfCode } from '../support/reference-terms.js';
import { Rig } from '../support/rig.js';
import { type Runners, runner } from '../support/runner.js';

const reasonHeader = 'x-llm-d-request-dropped-reason';

/** Without jitter on Retry-After. */
export function llmDResponse(drop: Drop, hasEndpoints = true): HttpErrorResponse {
  return toHttpResponse(drop, { contract: 'llm-d', hasEndpoints: () => hasEndpoints, random: () => 0 });
}

/** Status and reason header; nulls for a request that was let through. */
export function answerTo(
  drop: Drop | undefined,
  hasEndpoints: boolean,
): { status: number | null; reason: string | null } {
  if (drop === undefined) return { status: null, reason: null };
  const { status, headers } = llmDResponse(drop, hasEndpoints);
  return { status, reason: headers[reasonHeader] ?? null };
}

interface Release {
  /** Endpoints that the request was released to. */
  candidates?: number;
  afterScreeners?: number;
  afterFilters?: number;
  schedulerError?: unknown;
  admissionDenied?: unknown;
}

interface Translation {
  status: number | null;
  code?: string;
  reason?: string | null;
  messageContains?: string;
}

/** A request that passes an open gate. */
function dispatched(): Rig {
  const rig = new Rig();
  rig.gate.open(1);
  expect(rig.enqueue().state).toBe('Dispatched');
  return rig;
}

/** One drop for each canonical code that a drop can become. */
const dropsByCode: Readonly<Record<string, Drop>> = {
  ResourceExhausted: dropFrom('RejectedCapacity', ['ErrQueueAtCapacity']),
  ServiceUnavailable: dropFrom('RejectedNoEndpoints', ['ErrNoEndpoints']),
  Internal: dropFrom('RejectedOther', []),
};

const headersWithAliases = [fairnessIdHeader, objectiveHeader, modelNameRewriteHeader, sloTtftHeader, sloTpotHeader];

/** The names under which a header is looked up, the given one first. */
function namesOf(name: string): readonly [string, ...string[]] {
  const lower = name.toLowerCase();
  return headersWithAliases.find(([current]) => current === lower) ?? [lower];
}

export const httpRunners: Runners = {
  'errors.translate': runner<{ outcome: string; errorChain: readonly string[]; poolEmpty: boolean }, Translation>(
    { input: ['outcome', 'errorChain', 'poolEmpty'], expect: ['status', 'code', 'reason', 'messageContains'] },
    ({ input, expect: { status, code, reason, messageContains } }) => {
      if (input.outcome === 'Dispatched') {
        expect(status).toBeNull();
        expect(dispatched().dropped).toEqual([]);
        return;
      }
      const drop = dropFrom(input.outcome, input.errorChain);
      expect(answerTo(drop, !input.poolEmpty)).toEqual({ status, reason: reason ?? null });
      if (code !== undefined) expect(status).toBe(statusOfCode[code]);
      if (messageContains === undefined) return;
      const body = JSON.parse(llmDResponse(drop, !input.poolEmpty).body);
      expect(codesForMessage(messageContains, code)).toContain(body.code);
    },
  ),

  /**
   * Only drops become responses: a code of another part of a gateway, and an untyped error, are causes that nobody
   * foresaw.
   */
  'errors.http': runner<{ code: string | null }, { status?: number; transportError?: boolean }>(
    { input: ['code'], expect: ['status', 'transportError'] },
    ({ input, expect: { status, transportError = false } }) => {
      const drop = dropsByCode[input.code ?? ''] ?? dropFrom('RejectedOther', []);
      const found = answerTo(drop, true).status;
      if (status !== undefined) expect(found).toBe(status);
      expect(found === null).toBe(transportError);
    },
  ),

  /**
   * A pool of the candidates, and a filter for everything that leaves some of them out: nothing comes between the gate
   * and the endpoint here. A scheduler that fails, or a plugin that denies, is an admission policy that does.
   */
  'errors.postDispatch': runner<Release, { status: number; reason?: string | null }>(
    {
      input: ['candidates', 'afterScreeners', 'afterFilters', 'schedulerError', 'admissionDenied'],
      expect: ['status', 'reason'],
    },
    ({ input, expect: { status, reason = null } }) => {
      const { candidates = 1, afterScreeners = candidates, afterFilters = afterScreeners } = input;
      const admission: AdmissionPolicy = {
        type: 'given-answer',
        admit() {
          if (input.schedulerError !== undefined) throw new Error('this scheduler fails');
          return input.admissionDenied === undefined ? 'admit' : { reason: 'denied' };
        },
      };
      const endpointFilters: EndpointFilter[] = [
        { type: 'first-few', classOf: () => 'any', keep: (all) => all.slice(0, afterFilters) },
      ];
      const rig = new Rig({ admission, endpointFilters }, { endpoints: candidates });
      rig.gate.open(1);
      const ticket = rig.enqueue();
      // What waits for an endpoint waits until its time is up.
      rig.clock.advance(60_000);
      expect(answerTo(ticket.drop, candidates > 0)).toEqual({ status, reason });
    },
  ),

  'errors.capacityHint': runner<
    { wrappedIn?: string; retryAfterSeconds: number | null },
    { is: readonly string[]; retryAfterSeconds: number | null }
  >(
    { input: ['wrappedIn', 'retryAfterSeconds'], expect: ['is', 'retryAfterSeconds'] },
    ({ input, expect: expected }) => {
      const drop: Drop = { ...dropFrom('RejectedCapacity', []), retryAfterMs: (input.retryAfterSeconds ?? 0) * 1000 };
      expect(errorChainOf(drop)).toEqual(expect.arrayContaining([...expected.is]));
      if (input.wrappedIn !== undefined) expect(errorChainOf(drop)).toContain(input.wrappedIn);
      const { 'retry-after': told } = llmDResponse(drop, true).headers;
      expect(told === undefined ? null : Number(told)).toBe(expected.retryAfterSeconds);
    },
  ),

  'headers.aliases': runner<{ name: string }, { names: readonly string[] }>(
    { input: ['name'], expect: ['names'] },
    ({ input, expect: expected }) => {
      expect(namesOf(input.name)).toEqual(expected.names);
    },
  ),

  /** A header that is not there reads as nothing, in whatever way the vector says so. */
  'headers.lookup': runner<
    { headers: Readonly<Record<string, string>>; key: string },
    { value?: string | null; found?: boolean }
  >({ input: ['headers', 'key'], expect: ['value', 'found'] }, ({ input, expect: expected }) => {
    const value = headerValue(input.headers, namesOf(input.key));
    expect(value ?? '').toBe(expected.value ?? '');
    if (expected.found !== undefined) expect(value !== undefined).toBe(expected.found);
  }),

  'headers.agentIdentity': runner<
    { headers: Readonly<Record<string, string>>; additionalSessionHeaders?: readonly string[] },
    { identity: string | null }
  >({ input: ['headers', 'additionalSessionHeaders'], expect: ['identity'] }, ({ input, expect: expected }) => {
    expect(agentIdentity(input.headers, input.additionalSessionHeaders) ?? null).toBe(expected.identity);
  }),

  'headers.systemOwned': runner<
    { headers?: readonly string[]; notOwned?: readonly string[]; header?: string },
    { owned: boolean }
  >(
    { input: ['headers', 'notOwned', 'header'], expect: ['owned'] },
    ({ input: { headers = [], notOwned = [], header }, expect: { owned } }) => {
      const isOwned = (name: string): boolean => systemOwnedHeaders.has(name.toLowerCase());
      const asked = header === undefined ? headers : [...headers, header];
      expect(asked.filter((name) => isOwned(name) !== owned)).toEqual([]);
      expect(notOwned.filter((name) => isOwned(name) === owned)).toEqual([]);
    },
  ),

  /** Through the adapter of node:http, which skips what need not be controlled. */
  'headers.queueDuration': runner<
    { flowControlled: boolean; queuedMs: number | null },
    Readonly<Record<string, string | null>>
  >(
    { input: ['flowControlled', 'queuedMs'], expect: [queueDurationHeader] },
    ({ input: { flowControlled, queuedMs }, expect: expected }) => {
      const rig = dispatched();
      const outcome = {
        type: 'Dispatched',
        lease: rig.dispatched[0]?.lease as Lease,
        queuedMs: queuedMs ?? 0,
      } as const;
      const gate = { enqueue: () => Promise.resolve(outcome), enter: () => outcome };
      const req = new IncomingMessage(new Socket());
      const res = new ServerResponse(req);
      flowControl(gate, { skip: () => !flowControlled })(req, res, (error) => expect(error).toBeUndefined());
      expect(res.getHeader(queueDurationHeader) ?? null).toBe(expected[queueDurationHeader]);
    },
  ),

  /** A controller with as many waiting, and a request of their band that passes the adapter of node:http. */
  'headers.bandHeadroom': runner<{ capacity: number; length: number }, Readonly<Record<string, string | null>>>(
    { input: ['capacity', 'length'], expect: [bandHeadroomHeader] },
    ({ input: { capacity, length }, expect: expected }) => {
      const maxRequests = capacity === 0 ? Number.POSITIVE_INFINITY : capacity;
      const rig = new Rig({ bands: [{ priority: 0, limits: { maxRequests } }] });
      for (let index = 0; index < length; index++) rig.enqueue();
      const outcome = { type: 'Dispatched', lease: dispatched().dispatched[0]?.lease as Lease, queuedMs: 0 } as const;
      const gate = {
        enqueue: () => Promise.resolve(outcome),
        enter: () => outcome,
        bandHeadroom: (priority: number) => rig.flow.bandHeadroom(priority),
      };
      const req = new IncomingMessage(new Socket());
      const res = new ServerResponse(req);
      flowControl(gate, { bandHeadroom: true })(req, res, (error) => expect(error).toBeUndefined());
      expect(res.getHeader(bandHeadroomHeader) ?? null).toBe(expected[bandHeadroomHeader]);
    },
  ),
};
