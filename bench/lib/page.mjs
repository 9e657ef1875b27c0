// Writes docs/benchmarks.md and docs/benchmarks.svg from bench/results.json. Every figure on the page comes from there.
import { readFileSync, writeFileSync } from 'node:fs';
import { scenarios as known } from '../scenarios/index.mjs';
import { drawChart } from './chart.mjs';
import { engineInWords } from './engine.mjs';
import { figuresOf, format, spread } from './tables.mjs';
import { judgeTargets } from './targets.mjs';

const docs = new URL('../../docs/', import.meta.url);
const frame = new URL('../page.md', import.meta.url);

const headings = {
  ns: 'ns per request',
  'to-denque': '÷ denque',
  'to-permit': '÷ permit',
  'to-record': '÷ record',
  buildNs: 'to line up, ns',
  drainNs: 'to let go, ns',
  bytes: 'heap per waiting request, B',
  keptBytes: 'heap kept afterwards, B per request',
  dispatchNs: 'dispatching the same, ns',
  perDispatch: '÷ dispatching',
  plainNs: 'by `abort()` without a reason, ns',
  longestWaveMs: 'longest wave, ms',
  latenessMs: 'timer late, ms',
  p99Ns: '99th percentile, ns',
  keptFlows: 'flows remembered',
  perSecond: 'dispatches/s',
};

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
  'eventUs-200': 'CPU of an event, 200 streams, µs',
  'eventUs-1000': 'CPU of an event, 1,000 streams, µs',
  aloneUs: 'a request alone, µs',
  firstEventUs: 'to the first event, µs',
  'streamBytes-1000': 'memory of an open stream, B',
};
const gatewayRatios = { jsonUs: 'JSON ÷ node:http', 'eventUs-200': 'event ÷ node:http' };

export function writePage({ scenarios: measured, servers, gateways = [] }, subjects) {
  // In the order of the report, whenever each was measured.
  const scenarios = known.flatMap(({ name }) => measured.find((scenario) => scenario.name === name) ?? []);
  const parts = {
    origin: originLines([...scenarios, ...servers, ...gateways]),
    engine: engineInWords(scenarios),
    targets: targetTable(judgeTargets(scenarios)),
    subjects: subjectTable(subjects),
    scenarios: scenarios
      .filter(({ name }) => !name.startsWith('matrix'))
      .map(scenarioSection)
      .join('\n\n'),
    matrix: matrixTable(scenarios.filter(({ name }) => name.startsWith('matrix'))),
    http: serverTable(servers),
    gateways: gatewayTable(gateways),
  };
  const page = readFileSync(frame, 'utf8').replace(/<!-- (\w+) -->/g, (_, name) => parts[name]);
  writeFileSync(new URL('benchmarks.md', docs), page);
  writeFileSync(new URL('benchmarks.svg', docs), drawChart(chartRows(scenarios)));
}

const table = (head, rows) =>
  [head, head.map((_, column) => (column === 0 ? '---' : '---:')), ...rows]
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
    actual === undefined ? 'not measured' : `${format(actual)}${unit}`,
    actual === undefined ? '' : actual <= atMost ? 'yes' : 'no',
  ]);
  return table(['', 'target', 'measured', 'reached'], rows);
}

function subjectTable(subjects) {
  return table(
    ['subject', 'what it is'],
    subjects.map(({ name, note = 'this library, everything on that is on by default' }) => [name, note]),
  ).replaceAll('---:', '---');
}

function scenarioSection({ name, title, rounds, subjects }) {
  const columns = figuresOf(subjects);
  const rows = Object.entries(subjects).map(([subject, figures]) => [
    subject === 'headgate' ? '**headgate**' : subject,
    ...columns.map((column, index) => {
      if (figures.failed !== undefined) return index === 0 ? figures.failed : '';
      return spread(figures[column]);
    }),
  ]);
  const head = ['', ...columns.map((column) => headings[column] ?? column)];
  return `### ${name}\n\n${capitalized(title.replace(`${name}: `, ''))}. ${rounds} rounds.\n\n${table(head, rows)}`;
}

const capitalized = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;

function matrixTable(cells) {
  const names = ['permit', 'denque', 'headgate'];
  const rows = cells.map(({ name, subjects }) => [
    name.replace('matrix-', '').replaceAll('-', ' '),
    ...names.map((subject) =>
      subjects[subject]?.perSecond === undefined ? '' : format(subjects[subject].perSecond.median),
    ),
    spread(subjects.headgate?.['to-permit']),
  ]);
  return table(['', ...names.map((name) => `${name}, dispatches/s`), 'headgate ÷ permit'], rows);
}

function serverTable(servers) {
  const rows = servers.map(({ name, plain, gated, keptThroughput, addedP50Us, addedP99Us }) => [
    name,
    spread(plain),
    spread(gated),
    spread(keptThroughput),
    spread(addedP50Us),
    spread(addedP99Us),
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

function gatewayTable(gateways) {
  const rows = gateways.map(({ name, figures }) => [
    name === 'headgate' ? '**headgate gateway**' : name,
    ...Object.keys(gatewayColumns).map((figure) => spread(figures[figure])),
    ...Object.keys(gatewayRatios).map((figure) => spread(figures[`${figure}-to-node:http`])),
  ]);
  return table(['', ...Object.values(gatewayColumns), ...Object.values(gatewayRatios)], rows);
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
