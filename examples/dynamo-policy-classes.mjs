// @ts-check
// Policy classes of NVIDIA Dynamo's router as bands of a gateway: reads a file of `--router-policy-config`, and prints
// the sections of a gateway file that do the same. `node dynamo-policy-classes.mjs FILE` reads yours.
import { readFileSync } from 'node:fs';
import { loadGatewayConfig } from 'headgate/gateway';
import { parse, stringify } from 'yaml';

/**
 * The sample of Dynamo's router, shortened; later releases have flat classes with `slo_ms`, and reject a request whose
 * header names a class that they do not have. Source: ai-dynamo/dynamo, lib/kv-router/src/scheduling/policy_config.rs.
 */
const sample = `
default_policy_family: standard
uncached_isl_buckets:
  - { min_tokens: 0, bucket: cached }
  - { min_tokens: 3072, bucket: uncached }
policy_classes:
  - { name: cached, policy_family: standard, cache_bucket: cached, queue_policy: wspt, quantum: 2048 }
  - { name: uncached, policy_family: standard, cache_bucket: uncached, quantum: 512, prefill_busy_threshold_frac: 16.0 }
  - { name: latency_cached, policy_family: latency, cache_bucket: cached, quantum: 4096 }
  - { name: latency_uncached, policy_family: latency, cache_bucket: uncached, quantum: 1024 }
  - { name: agents, quantum: 1024, slo_ms: 30000, request_queue_limit_per_worker: 128 }
`;

/**
 * @typedef {{ name: string, policy_family?: string, queue_policy?: string, slo_ms?: number, quantum: number,
 *   request_queue_limit_per_worker?: number }} PolicyClass
 * @typedef {{ default_policy_family?: string, default_policy_class?: string, policy_classes?: PolicyClass[] }} PolicyFile
 */

/** What is done here; the rest is left to the router. */
const heeded = `default_policy_family default_policy_class policy_classes name policy_family queue_policy slo_ms quantum
  request_queue_limit_per_worker`.split(/\s+/);

/**
 * A family is one band, because the router alone knows what is cached, by which it tells its classes apart.
 * @param {PolicyFile} file
 * @param {number} servers what limits for each worker are multiplied by
 */
export function sectionsFor(file, servers) {
  const classes = file.policy_classes ?? [];
  const byDefault = file.default_policy_family ?? file.default_policy_class ?? '';
  const groupOf = (/** @type {PolicyClass} */ each) => each.policy_family ?? each.name;
  const names = [...new Set([byDefault, ...classes.map(groupOf)])];
  const sum = (/** @type {number[]} */ numbers) => numbers.reduce((all, each) => all + each, 0);
  // No class ranks above another: the default has priority 0, which is that of requests that ask for none.
  const groups = names.map((name, priority) => {
    const members = classes.filter((each) => groupOf(each) === name);
    if (members.length === 0) throw new Error(`the default must be a class or a family; got ${JSON.stringify(name)}`);
    return { name, priority, members };
  });
  const bands = groups.map(({ priority, members }) => {
    const [{ queue_policy, slo_ms } = /** @type {Partial<PolicyClass>} */ ({})] = members;
    const limit = sum(members.map((each) => each.request_queue_limit_per_worker ?? Infinity)) * servers;
    return {
      priority,
      ...(queue_policy === 'wspt' && { orderingPolicyRef: 'shortest-first-ordering-policy' }),
      ...(slo_ms !== undefined && { defaultRequestTTL: `${slo_ms}ms` }),
      ...(limit < Infinity && { maxRequests: Math.max(limit, 1) }),
    };
  });
  // Weights are in requests here, where Dynamo's quanta are in tokens that are not cached.
  const quanta = groups.map(({ members }) => sum(members.map((each) => each.quantum)));
  const weights = groups.map(({ priority }, i) => [
    String(priority),
    Math.round(Number(quanta[i]) / Math.min(...quanta)),
  ]);
  const keys = [file, ...classes].flatMap((each) => Object.keys(each));
  return {
    left: [...new Set(keys)].filter((key) => !heeded.includes(key)),
    sections: {
      objectives: Object.fromEntries(groups.map(({ name, priority }) => [name, priority])),
      policyClasses: names,
      plugins: [
        { type: 'shortest-first-ordering-policy' },
        { type: 'weighted-band-selection-policy', parameters: { weights: Object.fromEntries(weights) } },
      ],
      flowControl: { bandSelectionPolicyPluginRef: 'weighted-band-selection-policy', priorityBands: bands },
    },
  };
}

const [path] = process.argv.slice(2);
const upstreams = [{ id: 'frontend', url: 'http://127.0.0.1:8000', priority: 'dynamo' }];
const { sections, left } = sectionsFor(parse(path ? readFileSync(path, 'utf8') : sample), upstreams.length);
loadGatewayConfig({ listen: { port: 0 }, upstreams, ...sections }); // every fault would be told here
console.log(stringify(sections));
console.log(`# left to the router: ${left.join(', ')}`);
