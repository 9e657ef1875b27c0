/**
 * docs/options.md and docs/file-options.md are made of the tables that read options. `npm run docs -- options` writes
 * them.
 */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { checkAdapter } from '../../src/adapters/http/adapter-options.js';
import { flowTurns } from '../../src/adapters/ws/index.js';
import { object } from '../../src/base/schema/element.js';
import { batchDispatcher, retryBudget, retrying } from '../../src/client/index.js';
import { flowControlTable } from '../../src/config/flow-control-section.js';
import { flowMiddleware } from '../../src/fetch/ai/index.js';
import { flowFetch } from '../../src/fetch/index.js';
import { eppSettings } from '../../src/gateway/epp/epp-config.js';
import { fileSchema } from '../../src/gateway/settings/file-schema.js';
import { EndpointPool, inFlightEviction, resolveOptions } from '../../src/index.js';
import { inspector } from '../../src/observability/inspector/index.js';
import { openTelemetryMetrics } from '../../src/observability/opentelemetry/index.js';
import { prometheusMetrics } from '../../src/observability/prometheus/index.js';
import { localStore, sharedBudgets, sharedConcurrency, sharedFairness, sharedQuotas } from '../../src/redis/index.js';
import { scrape, watchHealth } from '../../src/upstream/index.js';
import { type OptionSet, rowsOf } from './code-options.js';
import { type Elsewhere, keysOf, rowsOf as rowsOfFile, sentenceOf } from './file-options.js';
import { type Row, tableOf } from './option-rows.js';

const gate = { enqueue: () => Promise.reject(new Error('not asked')) };
/** What is only read when there are no faults. */
const given = (options: object): never => options as never;

interface Part {
  readonly heading: string;
  /** A link to the page that tells why. */
  readonly why: string;
  readonly sets: readonly OptionSet[];
}

const parts: readonly Part[] = [
  {
    heading: 'Controller',
    why: '[Configuration](configuration.md)',
    sets: [
      {
        title: '`new FlowController(options)`',
        options: 'FlowControllerOptions',
        read: (options) => resolveOptions(given(options)),
      },
      { title: '`inFlightEviction(options)`', options: 'EvictionOptions', read: inFlightEviction },
    ],
  },
  {
    heading: 'Adapters',
    why: '[HTTP](http.md)',
    sets: [
      {
        title: '`flowControl(flow, options)`',
        options: 'FlowControlOptions',
        read: (options) => checkAdapter(gate, options),
      },
    ],
  },
  {
    heading: 'Sockets',
    why: '[Turns on sockets](sockets.md)',
    sets: [
      {
        title: '`flowTurns(flow, socket, options)`',
        options: 'FlowTurnsOptions',
        read: (options) => flowTurns(given(gate), given({}), given(options)),
      },
    ],
  },
  {
    heading: 'Fetch',
    why: '[Fetch](fetch.md)',
    sets: [
      {
        title: '`flowFetch(flow, options)`',
        options: 'FlowFetchOptions',
        read: (options) => flowFetch(given(gate), options),
      },
      {
        title: '`flowMiddleware(flow, options)`',
        options: 'FlowMiddlewareOptions',
        read: (options) => flowMiddleware(given(gate), options),
      },
    ],
  },
  {
    heading: 'Client',
    why: '[Client](client.md)',
    sets: [
      { title: '`retrying(fetch, options)`', options: 'RetryOptions', read: (options) => retrying(fetch, options) },
      { title: '`retryBudget(options)`', options: 'RetryBudgetOptions', read: retryBudget },
      { title: '`batchDispatcher(options)`', options: 'BatchDispatcherOptions', read: batchDispatcher },
    ],
  },
  {
    heading: 'Endpoints',
    why: '[Endpoints](endpoints.md)',
    sets: [
      {
        title: '`scrape(pool, options)`',
        options: 'ScrapeOptions',
        read: (options) => scrape(new EndpointPool(), options).stop(),
      },
      {
        title: '`watchHealth(pool, options)`',
        options: 'HealthOptions',
        read: (options) => watchHealth(new EndpointPool(), options).stop(),
      },
    ],
  },
  {
    heading: 'Shared state',
    why: '[Scale-out](scale-out.md)',
    sets: [
      {
        title: '`sharedConcurrency(client, options)`',
        options: 'SharedConcurrencyOptions',
        read: (options) => sharedConcurrency(localStore(), given(options)),
      },
      {
        title: '`sharedQuotas(client, options)`',
        options: 'SharedQuotasOptions',
        read: (options) => sharedQuotas(localStore(), given(options)),
      },
      {
        title: '`sharedBudgets(client, options)`',
        options: 'SharedBudgetsOptions',
        read: (options) => sharedBudgets(localStore(), given(options)),
      },
      {
        title: '`sharedFairness(client, policy, options)`',
        options: 'SharedFairnessOptions',
        read: (options) => sharedFairness(localStore(), given({}), given(options)),
      },
    ],
  },
  {
    heading: 'Metrics and the inspector',
    why: '[Metrics](metrics.md), [The inspector](troubleshooting.md#the-inspector)',
    sets: [
      {
        title: '`prometheusMetrics(flow, options)`',
        options: 'PrometheusMetricsOptions',
        read: (options) => prometheusMetrics(given({}), given(options)),
      },
      {
        title: '`openTelemetryMetrics(flow, options)`',
        options: 'OpenTelemetryMetricsOptions',
        read: (options) => openTelemetryMetrics(given({}), options),
      },
      {
        title: '`inspector(flow, options)`',
        options: 'InspectorOptions',
        read: (options) => inspector(given({}), options),
      },
    ],
  },
];

const made = '<!-- made by test/docs/options.test.ts: `npm run docs -- options` writes it -->';

function codePage(): string {
  const told = new Map<string, string>();
  const sections = parts.flatMap(({ heading, why, sets }) => [
    `## ${heading}`,
    `Why: ${why}.`,
    ...sets.flatMap((set) => [`### ${set.title}`, tableOf(rowsOf(set, told))]),
  ]);
  return pageOf(
    'Options in code',
    'The second column is what the error of a wrong option says, in short. Quantities and durations are written as in [Configuration](configuration.md#quantities-and-durations); parameters of policies are in [their pages](policies/README.md), options of files in [Options in files](file-options.md). [Every export](reference/) tells more.',
    ...sections,
  );
}

const elsewhere: Elsewhere = {
  plugins: '',
  saturationDetector: '',
  flowControl: '[as below](#flowcontrol)',
  'auth.anonymous': 'as `auth.keys[]`, without `key`',
  defaultPriorityBand: 'as `priorityBands[]`, without `priority`',
  defaultNegativePriorityBand: 'as `priorityBands[]`, without `priority`',
  plans: 'as `flows`',
};

function filePage(): string {
  const gateway = keysOf(fileSchema({ env: {}, readFile: () => '' }));
  const rows = gateway.map(
    ([name, schema]) => [name, schema, rowsOfFile(object({ [name]: schema }), elsewhere)] as const,
  );
  const sections = rows.filter(([, , { length }]) => length > 1);
  const single = rows.filter(([, , { length }]) => length === 1).flatMap(([, , row]) => row);
  return pageOf(
    'Options in files',
    'An editor with YAML support completes and checks these keys: [`headgate schema`](gateway.md#the-file). A secret is text, `{ env: NAME }` or `{ file: PATH }`.',
    '## Gateway files',
    'Why: [Gateway](gateway.md), and [Scale-out](scale-out.md#in-a-gateway-file) for `sharedState`.',
    tableOf(single),
    ...sections.flatMap(([name, schema, [, ...below]]) => [`### \`${name}\``, sentenceOf(schema), tableOf(below)]),
    '## `flowControl`',
    'Of gateway files, scenarios and EndpointPickerConfigs: [Configuration](configuration.md#in-yaml). Names of plugins are those that `plugins` declares, or types.',
    tableOf(flowControlRows()),
    '## `headgate`',
    'Of an EndpointPickerConfig, for [`headgate epp`](envoy.md#as-a-program).',
    tableOf(rowsOfFile(eppSettings, elsewhere)),
  );
}

/** A file that is silent means something else in an EndpointPickerConfig. */
function flowControlRows(): Row[] {
  const asInLlmD = rowsOfFile(flowControlTable('llm-d'), elsewhere);
  return rowsOfFile(flowControlTable('headgate'), elsewhere).map((row, index) => {
    const other = asInLlmD[index]?.otherwise ?? '';
    return other === row.otherwise
      ? row
      : { ...row, otherwise: `${row.otherwise}; in an EndpointPickerConfig ${other}` };
  });
}

function pageOf(title: string, ...blocks: readonly string[]): string {
  return `${[`# ${title}`, made, ...blocks].join('\n\n')}\n`;
}

describe('the pages of options', () => {
  it.each([
    ['options.md', codePage],
    ['file-options.md', filePage],
  ])('docs/%s is as the tables are', async (page, write) => {
    await expect(write()).toMatchFileSnapshot(fileURLToPath(new URL(`../../docs/${page}`, import.meta.url)));
  });
});
