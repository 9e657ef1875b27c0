/** The contract of every admission policy. */
import type { AdmissionPolicy, Usage } from '../../index.js';
import type { AdmissionView } from '../../types/index.js';
import { type ContractCase, contract, expectSame, expectThat } from './contract-case.js';
import { ofController, serveAll } from './controller-fixture.js';
import { endpointView, poolView, Random } from './views.js';

const usages: readonly (Usage | undefined)[] = [
  undefined,
  { promptTokens: 0, completionTokens: 0 },
  { promptTokens: 1e6, completionTokens: 7 },
];
const frozen = Object.freeze({ byteSize: 1, tokens: 3 });
const requests: readonly unknown[] = [{ byteSize: 1 }, { byteSize: 0, tokens: 1e9 }, {}, frozen];

function randomView(random: Random, nowMs: number): AdmissionView {
  const saturation = random.pick([0, 0.3, 0.99, 1, 50]);
  const endpoints = Array.from({ length: random.int(4) }, (_, index) =>
    endpointView(`e${index}`, { inFlightRequests: random.int(9) }),
  );
  return { nowMs, pool: poolView(...endpoints), waiting: random.int(1000), saturation: () => saturation };
}

/** A random history of requests that come and of admitted ones that end; the answers, in order. */
function live(policy: AdmissionPolicy, seed: number): unknown[] {
  const random = new Random(seed);
  const admitted: [request: unknown, fairnessId: string, priority: number][] = [];
  const answers: unknown[] = [];
  let nowMs = 0;
  for (let i = 0; i < 500; i++) {
    nowMs += random.int(50);
    if (random.chance(0.3) && admitted.length > 0) {
      const [request, fairnessId, priority] = admitted.splice(random.int(admitted.length), 1)[0]!;
      policy.released?.(request, { fairnessId, priority }, random.pick(usages));
      continue;
    }
    const request = random.pick(requests);
    const fairnessId = random.pick(['a', 'b', '__proto__', 'x'.repeat(300)]);
    const priority = random.pick([0, 5, -5, Number.MAX_SAFE_INTEGER]);
    const answer: unknown = policy.admit(request, Object.freeze({ fairnessId, priority }), randomView(random, nowMs));
    if (answer === 'admit') admitted.push([request, fairnessId, priority]);
    answers.push(answer);
  }
  return answers;
}

/** The contract of admission policies, as cases for any test framework. */
export function admissionPolicyContract(make: () => AdmissionPolicy): ContractCase[] {
  return contract(make, {
    'admits, or rejects with a reason, whatever the request carries'() {
      for (const answer of live(make(), 1))
        expectThat(answer === 'admit' || isRejection(answer), `it answers ${JSON.stringify(answer)}`);
    },
    'decides alike on like histories': () => expectSame(live(make(), 2), live(make(), 2), 'a history played twice'),
    async 'hears of the end of every request that it admitted, once'(policy) {
      let open = 0;
      const counted: AdmissionPolicy = {
        type: policy.type,
        admit(...call) {
          const answer = policy.admit(...call);
          if (answer === 'admit') open++;
          return answer;
        },
        released(...call) {
          open--;
          policy.released?.(...call);
        },
      };
      await serveAll({ admission: counted });
      expectSame(open, 0, 'requests that were admitted and did not end');
    },
    ...ofController(make, (each) => ({ admission: each() }), {
      served: 'leaves every request to a controller that it admits, and is never at fault',
      method: 'admit',
      lost: 'is passed over when its answers are lost: the request comes in',
    }),
  });
}

function isRejection(answer: unknown): boolean {
  if (typeof answer !== 'object' || answer === null || !('reason' in answer)) return false;
  const { cause, retryAfterMs } = answer as { cause?: unknown; retryAfterMs?: unknown };
  const isTime = retryAfterMs === undefined || (typeof retryAfterMs === 'number' && retryAfterMs >= 0);
  const isCause = cause === undefined || cause === 'saturated' || cause === 'overloaded';
  return typeof answer.reason === 'string' && isCause && isTime;
}
