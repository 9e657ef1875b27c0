// Writes docs/benchmarks.md and docs/benchmarks.svg from bench/results.json. Every figure on the page comes from there.
import { readFileSync, writeFileSync } from 'node:fs';
import { scenarios as known } from '../scenarios/index.mjs';
import { drawChart } from './chart.mjs';
import { engineInWords } from './engine.mjs';
import { format, spread } from './tables.mjs';
import { judgeTargets } from './targets.mjs';

const docs = new URL('../../docs/', import.meta.url);
const frame = new URL('../page.md', import.meta.url);

/** Scenarios that the libraries take part in, and figures beside the time of a request: the columns of one table. */
const compared = ['burst', 'burst-io', 'steady', 'priorities', 'uncontended', 'wake-up', 'backlog', 'drain'];
const otherFigures = [
  ['backlog', 'bytes', 'heap per waiting request, B'],
  ['drain', 'latenessMs', 'timer late in drain, ms'],
];

const charted = [
  'burst',
  'burst-io',
  'steady',
  'priorities',
  'keyed1',
  'keyed100',
  'keyed10k',
  'keyed100k',
  'churn',
  'uncontended',
  'wake-up',
];
const chartedBounds = ['denque', 'permit'];

/** Figures of bench/gateway, and the heads of their columns. */
const gatewayColumns = {
  jsonUs: 'CPU of a JSON request, µs',
  'besideUs-1000': 'beside 1,000 open streams',
  'besideUs-5000': 'beside 5,000',
  'eventUs-200': 'CPU of an event, 200 streams, µs',
  'eventUs-changing-200': 'of events that differ, µs',
  'eventUs-1000': 'CPU of an event, 1,000 streams, µs',
  aloneUs: 'a request alone, µs',
  firstEventUs: 'to the first event, µs',
  'streamBytes-1000': 'memory of an open stream, B',
};
const gatewayRatios = {
  jsonUs: 'JSON ÷ node:http',
  'eventUs-200': 'event ÷ node:http',
  'eventUs-changing-200': 'event that differs ÷ node:http',
};

const fixedRateColumns = {
  perSecond: 'requests/s',
  p50Ms: 'p50, ms',
  p99Ms: 'p99, ms',
  p999Ms: 'p99.9, ms',
  'p50Ms-added': 'p50 added, ms',
  'p99Ms-added': 'p99 added, ms',
  'p999Ms-added': 'p99.9 added, ms',
};

const interfaces = ['chat', 'chat-stream', 'responses', 'responses-stream', 'messages', 'messages-stream'];

const overloadColumns = {
  goodput: ['goodput ÷ capacity', format],
  'interactive-good': ['good, interactive', inPercent],
  'polite-good': ['good, interactive, b to d', inPercent],
  'batch-good': ['good, batch', inPercent],
  'interactive-p99Ms': ['first token p99, interactive, ms', format],
  'batch-p99Ms': ['first token p99, batch, ms', format],
  recoveryMs: ['late after the peak, ms', format],
};

export function writePage(results, subjects) {
  const { scenarios: measured, servers, gateways = [], fixedRate = [], workloads = [], overload = [] } = results;
  // In the order of the report, whenever each was measured.
  const scenarios = known.flatMap(({ name }) => measured.find((scenario) => scenario.name === name) ?? []);
  const parts = {
    origin: originLines([...scenarios, ...servers, ...gateways, ...fixedRate, ...workloads, ...overload]),
    engine: engineInWords(scenarios),
    targets: targetTable(judgeTargets(scenarios)),
    peers: peerTable(scenarios, subjects),
    scenarios: boundTable(scenarios.filter(({ name }) => !name.startsWith('matrix'))),
    http: serverTable(servers),
    gateways: gatewayTable(gateways),
    fixedRate: fixedRateTable(fixedRate),
    workloads: workloadTable(workloads),
    overload: overloadTable(overload),
  };
  const page = readFileSync(frame, 'utf8')
    // A section of what was not measured is left out.
    .replace(/\n### [^\n]*\n(?:(?!\n##)[\s\S])*?<!-- (\w+) -->\n/g, (section, name) =>
      parts[name] === '' ? '' : section,
    )
    .replace(/<!-- (\w+) -->/g, (_, name) => parts[name]);
  writeFileSync(new URL('benchmarks.md', docs), page);
  writeFileSync(new URL('benchmarks.svg', docs), drawChart(chartRows(scenarios)));
}

/** Empty without rows. */
const table = (head, rows) =>
  rows.length === 0
    ? ''
    : [head, head.map((_, column) => (column === 0 ? '---' : '---:')), ...rows]
        .map((cells) => `| ${cells.join(' | ')} |`)
        .join('\n');

function originLines(entries) {
  const origins = [...new Set(entries.map(({ takenOn, machine }) => `* ${takenOn}: ${machine}`))];
  return origins.join('\n');
}

function targetTable(targets) {
  const rows = targets.map(({ what, unit, atMost, actual }) => [
    what,
    `≤ ${atMost}${unit}`,
    actual === undefined ? 'not measured' : `${format(actual)}${unit}${actual <= atMost ? '' : ', **missed**'}`,
  ]);
  return table(['', 'target', 'measured'], rows);
}

/** `p-limit 7.3.3` of a subject's note; the bounds have none. */
const versionIn = (note = '') => /^\S+ \d+\.\d+\.\d+/.exec(note)?.[0];

/** Medians: a row for each subject, a column for each scenario that libraries take part in. */
function peerTable(scenarios, subjects) {
  const figuresIn = (name, subject) => scenarios.find((scenario) => scenario.name === name)?.subjects[subject];
  const columns = [...compared.map((name) => [name, 'ns']), ...otherFigures];
  const rows = subjects.map(({ name, note }) => [
    name === 'headgate' ? '**headgate**' : (versionIn(note) ?? name),
    ...columns.map(([scenario, figure]) => median(figuresIn(scenario, name)?.[figure])),
  ]);
  return table(
    ['', ...columns.map(([scenario, , head = scenario]) => head)],
    rows.filter(([, ...cells]) => cells.some((cell) => cell !== '')),
  );
}

/** headgate in every scenario, with the range over the rounds. */
function boundTable(scenarios) {
  const rows = scenarios.map(({ name, title, subjects: { headgate = {} } }) => [
    `**${name}**: ${title.replace(`${name}: `, '')}`,
    spread(headgate.ns),
    spread(headgate['to-permit']),
    spread(headgate['to-record']),
  ]);
  return table(['', 'ns per request', '÷ permit', '÷ record'], rows);
}

function inPercent(share) {
  return `${Math.round(100 * share)} %`;
}

const median = (summary) => (summary === undefined ? '' : format(summary.median));

function serverTable(servers) {
  const rows = servers.map(({ name, plain, gated, keptThroughput, addedP50Us, addedP99Us }) => [
    name,
    median(plain),
    median(gated),
    median(keptThroughput),
    median(addedP50Us),
    median(addedP99Us),
  ]);
  return table(
    [
      '',
      'requests/s without',
      'requests/s with',
      'with ÷ without',
      'added at the median, µs',
      'added at the 99th percentile, µs',
    ],
    rows,
  );
}

/** A load and a proxy, or a proxy alone. */
const proxyName = (name) => name.replace('headgate', '**headgate gateway**');

function fixedRateTable(rows) {
  return table(
    ['', ...Object.values(fixedRateColumns)],
    rows.map(({ name, figures }) => [
      proxyName(name),
      ...Object.keys(fixedRateColumns).map((figure) => (figures[figure] === undefined ? '' : format(figures[figure]))),
    ]),
  );
}

/** p50 and p99 of each interface; a gateway that does not serve one has none. */
function workloadTable(rows) {
  const cell = (figures, name) =>
    figures[`${name}-p50Ms`] === undefined
      ? ''
      : `${format(figures[`${name}-p50Ms`])} / ${format(figures[`${name}-p99Ms`])}`;
  return table(
    ['p50 / p99, ms', ...interfaces, 'most requests/s', 'most memory, MB', 'first answer, s'],
    rows.map(({ name, figures }) => [
      proxyName(name),
      ...interfaces.map((one) => cell(figures, one)),
      format(figures.mostPerSecond),
      format(figures.mostBytes / 2 ** 20),
      format(figures.coldStartMs / 1000),
    ]),
  );
}

function overloadTable(rows) {
  return table(
    ['load ÷ capacity', ...Object.values(overloadColumns).map(([head]) => head)],
    rows.map(({ name, figures }) => [
      proxyName(name),
      ...Object.entries(overloadColumns).map(([figure, [, show]]) =>
        figures[figure] === undefined ? '' : show(figures[figure]),
      ),
    ]),
  );
}

/** A column that nobody was measured for is left out. */
function gatewayTable(gateways) {
  const ratios = Object.entries(gatewayRatios).map(([figure, head]) => [`${figure}-to-node:http`, head]);
  const columns = [...Object.entries(gatewayColumns), ...ratios].filter(([figure]) =>
    gateways.some(({ figures }) => figures[figure] !== undefined),
  );
  const rows = gateways.map(({ name, figures }) => [
    proxyName(name),
    ...columns.map(([figure]) => median(figures[figure])),
  ]);
  return table(['', ...columns.map(([, head]) => head)], rows);
}

function chartRows(scenarios) {
  return charted
    .map((name) => scenarios.find((scenario) => scenario.name === name))
    .filter((scenario) => scenario?.subjects.headgate?.ns !== undefined)
    .map(({ name, subjects }) => ({
      name,
      ratio: subjects.headgate['to-permit']?.median,
      points: Object.entries(subjects)
        .filter(([subject, { ns }]) => ns !== undefined && !['bare', 'tinyqueue'].includes(subject))
        .map(([subject, { ns }]) => ({ subject, kind: kindOf(subject), ns: ns.median })),
    }));
}

function kindOf(subject) {
  if (subject === 'headgate') return 'subject';
  return chartedBounds.includes(subject) ? 'bound' : 'peer';
}
