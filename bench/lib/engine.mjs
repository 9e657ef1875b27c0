// What the engine does, in sentences: each figure comes from the results, and names the scenario that it was taken in.
import { format } from './tables.mjs';

const perSecond = ({ ns }) => format(Math.round(1e9 / ns.median / 1000) * 1000);
const nanoseconds = (figure) => `${format(figure.median)} ns`;
const link = (name) => `(${name})`;

/** The scenarios that a sentence needs, and the sentence, of headgate's summaries there. */
const sentences = [
  [
    ['steady', 'uncontended', 'keyed1', 'keyed100k'],
    (steady, uncontended, one, many) =>
      `**Dispatches.** One core dispatches about ${perSecond(steady)} requests a second in steady traffic, where each one waits ${link('steady')}, ` +
      `and ${perSecond(uncontended)} where seats are free ${link('uncontended')}. With 100,000 tenants a request costs ` +
      `${format(many.ns.median / one.ns.median)} times what it costs with one ${link('keyed100k')}` +
      ': the steps are the same, and more memory is touched.',
  ],
  [
    ['wake-up'],
    ({ ns, p99Ns }) =>
      `**Wake-up.** From the end of one request to the start of the one that waits for its seat it takes ${nanoseconds(ns)} at the median and ` +
      `${nanoseconds(p99Ns)} at the 99th percentile ${link('wake-up')}.`,
  ],
  [
    ['drain'],
    ({ latenessMs }) =>
      '**Drain.** When a long queue may go at once, the event loop still serves others. While 100,000 requests go, a timer of 1 ms is at worst ' +
      `${format(latenessMs.median)} ms late ${link('drain')}, because one turn dispatches a limited number (\`maxDispatchesPerTurn\`).`,
  ],
  [
    ['backlog-alone', 'backlog'],
    (alone, withCaller) =>
      `**Memory.** A waiting request keeps ${format(alone.bytes.median)} B of heap ${link('backlog-alone')}, and ${format(withCaller.bytes.median)} B ` +
      `with the promises of its caller ${link('backlog')}.`,
  ],
  [
    ['expiry'],
    ({ ns, perDispatch }) =>
      `**Expiry.** When 100,000 deadlines pass together, each costs ${nanoseconds(ns)}, which is ${format(perDispatch.median)} times a dispatch ` +
      `${link('expiry')}.`,
  ],
  [
    ['cancel'],
    ({ ns, 'to-permit': toPermit }) =>
      `**Cancellation.** A waiting request that its client gives up costs ${nanoseconds(ns)}, ${format(toPermit.median)} times the permit bound, where ` +
      `Node's own work for the signal is nearly all ${link('cancel')}.`,
  ],
];

/** A list; a sentence whose figures were not measured is left out. */
export function engineInWords(scenarios) {
  const figuresOf = (name) => scenarios.find((scenario) => scenario.name === name)?.subjects.headgate;
  return sentences
    .map(([names, say]) => [names.map(figuresOf), say])
    .filter(([figures]) => figures.every((each) => each !== undefined && each.failed === undefined))
    .map(([figures, say]) => `* ${say(...figures)}`)
    .join('\n');
}
