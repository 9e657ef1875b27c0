// The command line of run.mjs.
import { parseArgs } from 'node:util';

const list = (text) => text?.split(',').filter((name) => name !== '');

export function readArguments(args = process.argv.slice(2)) {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: 'string' },
      subjects: { type: 'string' },
      parts: { type: 'string' },
      rounds: { type: 'string' },
      quick: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      render: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      json: { type: 'string' },
    },
  });
  const rounds = Number(values.rounds ?? (values.quick ? 1 : 5));
  if (!(Number.isInteger(rounds) && rounds >= 1))
    throw new Error(`--rounds: expected an integer from 1 up, got ${values.rounds}`);
  if (values.write && (values.quick || values.subjects !== undefined)) {
    throw new Error('--write: expected all subjects and all requests, got --quick or --subjects');
  }
  return {
    ...values,
    rounds,
    only: list(values.only),
    subjects: list(values.subjects),
    parts: list(values.parts),
    /** Part of each scenario's jobs. */
    scale: values.quick ? 0.1 : 1,
  };
}
