import { describe, expect, it } from 'vitest';
import { readBy } from '../../../../src/base/schema/element.js';
import { hysteresisPlugin } from '../../../../src/gate/detectors/composite/hysteresis.js';
import { maxOfPlugin, meanOfPlugin } from '../../../../src/gate/detectors/composite/max-of.js';
import { type StageAwareDetector, stageAwarePlugin } from '../../../../src/gate/detectors/composite/stage-aware.js';
import {
  concurrencyDetector,
  EndpointPool,
  FlowConfigError,
  type PoolView,
  type SaturationDetector,
  type Schema,
} from '../../../../src/index.js';
import { fakePool } from '../../../support/fake-pool.js';

const constant = (reading: number): SaturationDetector => ({ type: 'constant', saturation: () => reading });

/** Detectors by name; what is not there is an error with a path, or is thrown as it is. */
function references(known: Readonly<Record<string, SaturationDetector | Error>>) {
  return {
    resolve: (_kind: 'saturationDetector', name: string): SaturationDetector => {
      const found = known[name];
      if (found instanceof Error) throw found;
      if (found === undefined)
        throw new FlowConfigError('file', [{ path: '', expected: 'a name in the file', got: name }]);
      return found;
    },
  };
}

function issuesOf(make: () => unknown): unknown {
  try {
    make();
  } catch (error) {
    if (error instanceof FlowConfigError)
      return error.issues.map(({ path, expected, got }) => `${path}: ${expected}; got ${got}`);
    throw error;
  }
  return [];
}

type Plugin = { readonly parameters: Schema<unknown> };

function problemsOf({ parameters }: Plugin, given: unknown): unknown[] {
  const problems: unknown[] = [];
  readBy(parameters, given, (expected, path = [], got) => void problems.push([expected, path, got]));
  return problems;
}

const pool = fakePool([[1, 0]]);
const staged = (stage: 'prefill' | 'decode'): PoolView => ({ ...pool, stage });

describe('maxOf and meanOf in a file', () => {
  it('are made of the detectors that the file names, under these names', () => {
    const known = references({ low: constant(0.2), high: constant(0.8) });
    const max = maxOfPlugin.create({ detectors: ['low', 'high'] }, known);
    const mean = meanOfPlugin.create({ detectors: ['low', 'high'] }, known);
    expect([max.type, max.saturation(pool, 0), max]).toEqual([
      'max-saturation-detector',
      0.8,
      expect.objectContaining({ winner: 'high' }),
    ]);
    expect([mean.type, mean.saturation(pool, 0)]).toEqual(['mean-saturation-detector', 0.5]);
    expect([maxOfPlugin.type, meanOfPlugin.type]).toEqual([max.type, mean.type]);
  });

  it('judge stages as the file says, by the name of the detector', () => {
    const max = maxOfPlugin.create(
      { detectors: ['low', 'high'], stages: { high: ['prefill'] } },
      references({ low: constant(0.2), high: constant(0.8) }),
    );
    expect([max.saturation(staged('prefill'), 0), max.saturation(staged('decode'), 0)]).toEqual([0.8, 0.2]);
  });

  it('tell of each name that is not in the file, and where it stands', () => {
    const make = () => maxOfPlugin.create({ detectors: ['x', 'low', 'y'] }, references({ low: constant(0) }));
    expect(issuesOf(make)).toEqual([
      'detectors[0]: a name in the file; got x',
      'detectors[2]: a name in the file; got y',
    ]);
    expect(make).toThrow(/^max-saturation-detector: 2 problems/);
    // That the detector could not be made has been told where it is declared.
    expect(
      issuesOf(() => maxOfPlugin.create({ detectors: ['x'] }, references({ x: new FlowConfigError('x', []) }))),
    ).toEqual([]);
    expect(() => maxOfPlugin.create({ detectors: ['x'] }, references({ x: new FlowConfigError('x', []) }))).toThrow(
      FlowConfigError,
    );
  });

  it('let through what is no problem of the file', () => {
    const broken = new Error('broken');
    expect(() => maxOfPlugin.create({ detectors: ['x'] }, references({ x: broken }))).toThrow(broken);
  });

  it.each<[string, unknown, unknown[]]>([
    ['one name', { detectors: ['a'] }, []],
    ['several names, and the stages of one', { detectors: ['a', 'b'], stages: { b: ['decode'] } }, []],
    ['no name', { detectors: [] }, [['at least one entry', ['detectors'], undefined]]],
    [
      'one name several times',
      { detectors: ['a', 'b', 'a', 'a'] },
      [2, 3].map((at) => ['a name that is not in the list yet', ['detectors', at], undefined]),
    ],
    [
      'stages of another one',
      { detectors: ['a'], stages: { b: [] } },
      [['only names that are in detectors', ['stages', 'b'], 'a name that is not']],
    ],
    ['no stages of one', { detectors: ['a'], stages: { a: [] } }, [['at least one entry', ['stages', 'a'], undefined]]],
    ['no list', { detectors: 'a' }, [['an array of names, at least one entry', ['detectors'], undefined]]],
  ])('take %s', (_, given, problems) => {
    expect(problemsOf(maxOfPlugin, given)).toEqual(problems);
  });
});

describe('byStage in a file', () => {
  const twoStages = new EndpointPool();
  for (const role of ['prefill', 'decode']) twoStages.add(role, { labels: { 'llm-d.ai/role': role } });
  const known = references({
    low: constant(0.2),
    high: constant(0.8),
    seats: concurrencyDetector({ maxConcurrency: 1 }),
  });
  const stagesBy = (parameters: object): unknown => {
    const detector = stageAwarePlugin.create(parameters, known);
    detector.saturation(twoStages, 0);
    return (detector as StageAwareDetector).stageSaturation;
  };

  it('is made of one detector for both stages, or of one for each', () => {
    expect(stagesBy({ detector: 'low' })).toEqual({ prefill: 0.2, decode: 0.2 });
    expect(stagesBy({ prefill: 'low', decode: 'high' })).toEqual({ prefill: 0.2, decode: 0.8 });
    expect(stagesBy({ prefill: 'low', decode: 'low' })).toEqual({ prefill: 0.2, decode: 0.2 });
  });

  it('asks once for a detector of both stages', () => {
    const asked: string[] = [];
    stageAwarePlugin.create(
      { detector: 'low' },
      {
        resolve: (_kind, name) => {
          asked.push(name);
          return constant(0);
        },
      },
    );
    expect(asked).toEqual(['low']);
  });

  it('tells of the names that are not in the file, and where they stand', () => {
    const issues = (parameters: object): unknown => issuesOf(() => stageAwarePlugin.create(parameters, known));
    expect(issues({ detector: 'x' })).toEqual(['detector: a name in the file; got x']);
    expect(issues({ prefill: 'x', decode: 'low' })).toEqual(['prefill: a name in the file; got x']);
    expect(issues({ prefill: 'low', decode: 'y' })).toEqual(['decode: a name in the file; got y']);
    expect(issues({ prefill: 'x', decode: 'y' })).toEqual([
      'prefill: a name in the file; got x',
      'decode: a name in the file; got y',
    ]);
    expect(() => stageAwarePlugin.create({ detector: 'x' }, known)).toThrow(
      /^stage-aware-saturation-detector: detector/,
    );
  });

  it.each<[object, boolean]>([
    [{ detector: 'a' }, true],
    [{ prefill: 'a', decode: 'b' }, true],
    [{}, false],
    [{ prefill: 'a' }, false],
    [{ decode: 'b' }, false],
    [{ detector: 'a', prefill: 'a' }, false],
    [{ detector: 'a', decode: 'b' }, false],
    [{ detector: 'a', prefill: 'a', decode: 'b' }, false],
  ])('takes either one name or two: %j', (given, isRight) => {
    expect(problemsOf(stageAwarePlugin, given)).toEqual(
      isRight ? [] : [['either "detector", or both "prefill" and "decode"', [], undefined]],
    );
  });
});

describe('withHysteresis in a file', () => {
  it('is made of the detector that the file names', () => {
    const inner = constant(1);
    expect(hysteresisPlugin.create({ detector: 'x', closeAt: 2 }, references({ x: inner })).saturation(pool, 0)).toBe(
      0.5,
    );
    const missing = () => hysteresisPlugin.create({ detector: 'x' }, references({}));
    expect(issuesOf(missing)).toEqual(['detector: a name in the file; got x']);
    expect(missing).toThrow(/^hysteresis-saturation-detector: detector/);
    expect(problemsOf(hysteresisPlugin, {})).toEqual([['the name of a saturation detector', ['detector'], undefined]]);
  });
});
