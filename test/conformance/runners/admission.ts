/** End to end: a request comes to a real controller, and the client gets an answer. */
import { expect } from 'vitest';
import { Rig } from '../support/rig.js';
import { type Runners, runner } from '../support/runner.js';
import { answerTo } from './http.js';

interface Admission {
  saturation: number;
  endpoints: number;
  priority?: number;
  bandMaxRequests?: number;
  bandMaxBytes?: number;
  bytes?: number;
  /** Requests that wait already. */
  filler?: number;
  ttlMs?: number;
  cancel?: boolean;
  stop?: boolean;
  shutdown?: boolean;
}

export const admissionRunners: Runners = {
  'admission.endToEnd': runner<Admission, { status: number | null; reason?: string | null; admitted?: boolean }>(
    {
      input: [
        'saturation',
        'endpoints',
        'priority',
        'bandMaxRequests',
        'bandMaxBytes',
        'bytes',
        'filler',
        'ttlMs',
        'cancel',
        'stop',
        'shutdown',
      ],
      expect: ['status', 'reason', 'admitted'],
    },
    async ({ input, expect: expected }) => {
      const {
        saturation,
        endpoints,
        priority = 0,
        bandMaxRequests,
        bandMaxBytes,
        bytes = 0,
        filler = 0,
        ttlMs,
        cancel,
        stop,
        shutdown,
      } = input;
      const limits = { maxRequests: bandMaxRequests, maxBytes: bandMaxBytes };
      const options = { bands: [{ priority, limits }], defaultRequestTtl: ttlMs, saturationDetector: () => saturation };
      const rig = new Rig(options, { endpoints });
      rig.enqueueMany(filler, { priority, byteSize: bytes });
      const ticket = rig.enqueue({ priority, byteSize: bytes });
      if (ttlMs !== undefined) rig.clock.advance(ttlMs);
      if (cancel === true) ticket.abort.abort();
      if (stop === true || shutdown === true) await rig.flow.close();
      const { status = null, reason = null, admitted = status === null } = expected;
      expect(answerTo(ticket.drop, endpoints > 0)).toEqual({ status, reason });
      expect(ticket.state === 'Dispatched').toBe(admitted);
    },
  ),
};
