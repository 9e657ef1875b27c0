/** What simulated servers cost, by group. */
import { describe, expect, it } from 'vitest';
import { concurrencyDetector } from '../../src/index.js';
import {
  comparisonTable,
  formatFigure,
  htmlReport,
  parseMeasure,
  resultTable,
  type SimulationOptions,
  simulate,
} from '../../src/simulator/index.js';

const rows = Array.from({ length: 40 }, (_, i) => ({
  arrivalMs: i * 10,
  priority: i % 4 === 0 ? -10 : 100,
  promptTokens: 1000,
  outputTokens: 100,
  serviceMs: 100,
}));

function scenario(after: number): SimulationOptions {
  return {
    duration: '1h',
    servers: [
      { model: 'slots', slots: 2, name: 'gpu', labels: { group: 'own' }, price: { perHour: 4 } },
      { model: 'slots', slots: 8, name: 'provider', labels: { group: 'paid' }, price: { input: 3, output: 15 } },
    ],
    traffic: [{ arrivals: { type: 'trace', rows } }],
    flow: {
      saturationDetector: concurrencyDetector({ maxConcurrency: 2 }),
      bands: [
        { priority: 100, endpoints: ['own', { group: 'paid', after }] },
        { priority: -10, endpoints: ['own'] },
      ],
    },
  };
}

describe('a simulation whose servers have prices', () => {
  it('bills tokens where they were served, and servers by the hour', async () => {
    const result = await simulate(scenario(50));
    const [own, paid] = result.servers;
    const perRequest = (1000 * 3 + 100 * 15) / 1e6;
    expect(own).toMatchObject({ id: 'gpu', group: 'own' });
    expect(own?.cost).toBeCloseTo((4 * result.endedAtMs) / 3_600_000, 10);
    const served = Math.round((paid?.cost ?? 0) / perRequest);
    expect(paid?.cost).toBeCloseTo(served * perRequest, 10);
    expect(served).toBeGreaterThan(5);
    expect(served).toBeLessThanOrEqual(30);
    expect(parseMeasure('spend(paid)').read(result)).toBe(paid?.cost);
    expect(parseMeasure('spend').read(result)).toBeCloseTo((own?.cost ?? 0) + (paid?.cost ?? 0), 10);
    expect(parseMeasure('spend(nobody)').read(result)).toBeNaN();
    expect(resultTable(result)).toMatch(/^Spent: [\d.]+ own, [\d.]+ in all, [\d.]+ paid\.$/m);
    expect(htmlReport([result])).toContain('Spent: ');
  });

  it('spends less on the second group where requests wait longer for the first', async () => {
    const [soon, late] = await Promise.all([simulate(scenario(0)), simulate(scenario(300))]);
    const paid = parseMeasure('spend(paid)');
    expect(paid.read(late)).toBeLessThan(paid.read(soon));
    const table = comparisonTable([
      { name: 'soon', results: [soon] },
      { name: 'late', results: [late] },
    ]);
    expect(table).toMatch(/^spend /m);
    expect(formatFigure(paid.read(soon), paid.unit)).toMatch(/^0\.\d\d$/);
  });

  it('says nothing of money where none has', async () => {
    const { servers, ...rest } = scenario(50);
    const free = servers.map(({ price: _, ...server }) => server) as SimulationOptions['servers'];
    const result = await simulate({ ...rest, servers: free });
    expect(resultTable(result)).not.toContain('Spent');
    expect(result.servers[0]?.cost).toBeUndefined();
    expect(parseMeasure('spend').read(result)).toBeNaN();
  });
});
