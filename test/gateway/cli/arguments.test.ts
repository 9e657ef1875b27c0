import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import { parseCommand } from '../../../src/gateway/cli/arguments.js';

const gateway = (...more: string[]): unknown => parseCommand(['gateway', '--config', 'g.yaml', ...more]);

describe('--workers', () => {
  it('is a number of processes, one for each core, or one', () => {
    expect(gateway()).toMatchObject({ name: 'gateway', workers: 1 });
    expect(gateway('--workers', '4')).toMatchObject({ name: 'gateway', workers: 4 });
    expect(gateway('--workers=auto')).toMatchObject({ name: 'gateway', workers: availableParallelism() });
    expect(gateway('--workers', '256')).toMatchObject({ name: 'gateway', workers: 256 });
  });

  it.each(['0', '-1', '1.5', '257', 'all', '', 'NaN', 'Infinity', '2x'])('is not %j', (given) => {
    const problem = `--workers: expected auto, or a number from 1 to 256; got "${given}"`;
    expect(gateway(`--workers=${given}`)).toEqual({ name: 'wrong', problem });
  });

  it('needs its value, and a gateway', () => {
    expect(gateway('--workers')).toMatchObject({ name: 'wrong', problem: expect.stringContaining('--workers') });
    const problem = 'expected --workers with gateway';
    expect(parseCommand(['epp', '--config', 'e.yaml', '--workers', '2'])).toEqual({ name: 'wrong', problem });
  });
});
