/** A grid of values: every combination is simulated. */
import { configError } from '../../base/faults/flow-config-error.js';

/** One axis of a grid. */
export interface SweepAxis {
  readonly path: string;
  readonly values: readonly (number | string)[];
}

/** `path=4,8,16` or, for integers, `path=4..64` and `path=4..64/4` with a step. @throws FlowConfigError */
export function parseSweepAxis(text: string): SweepAxis {
  const [, path = '', list = ''] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  const [, from, to, step] = /^(\d+)\.\.(\d+)(?:\/(\d+))?$/.exec(list) ?? [];
  const values =
    from === undefined ? list.split(',').map(readValue) : range(Number(from), Number(to), Number(step ?? 1));
  if (path !== '' && list !== '' && values.length > 0 && values.length <= 1000) return { path: path.trim(), values };
  const expected = 'path=value,value,… or path=from..to/step, with 1000 values at most';
  throw configError('--sweep', '', expected, JSON.stringify(text));
}

function readValue(text: string): number | string {
  const trimmed = text.trim();
  return trimmed !== '' && !Number.isNaN(Number(trimmed)) ? Number(trimmed) : trimmed;
}

function range(from: number, to: number, step: number): number[] {
  const values: number[] = [];
  for (let value = from; value <= to && step > 0 && values.length <= 1000; value += step) values.push(value);
  return values;
}

/** Every combination, the last axis changing fastest. */
export function combinations(axes: readonly SweepAxis[]): (number | string)[][] {
  return axes.reduce<(number | string)[][]>(
    (rows, { values }) => rows.flatMap((row) => values.map((value) => [...row, value])),
    [[]],
  );
}
