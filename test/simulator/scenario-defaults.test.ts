/** What a scenario means where it is silent, and where its traffic comes from. */
import { describe, expect, it } from 'vitest';
import { loadGatewayConfig } from '../../src/gateway/index.js';
import { loadScenario, scenarioFromTrace, simulate } from '../../src/simulator/index.js';

const servers = [{ model: 'slots', slots: 2, serviceTime: 100 }];
const sections = {
  plugins: [{ type: 'concurrency-detector' }],
  saturationDetector: { pluginRef: 'concurrency-detector' },
};

describe('a scenario', () => {
  it('means what a gateway file of the same sections means: its tenants take turns, and a full queue drops from the largest', () => {
    const { options } = loadScenario({
      duration: 1000,
      servers,
      traffic: [{ arrivals: { type: 'fixed', rate: 1 } }],
      ...sections,
    });
    const { flow } = loadGatewayConfig({ listen: { port: 0 }, upstreams: [], ...sections });
    const simulated = typeof options.flow === 'function' ? options.flow() : options.flow;
    expect(simulated.defaultBand?.fairness?.type).toBe('round-robin-fairness-policy');
    expect(flow.defaultBand?.fairness?.type).toBe(simulated.defaultBand?.fairness?.type);
    expect([simulated.overflow, flow.overflow]).toEqual(['fair', 'fair']);
  });

  it('in shadow mode is what the shadow would do: the same as in mode queue', () => {
    const run = (mode: string): unknown => {
      const traffic = [{ arrivals: { type: 'poisson', rate: 40 } }];
      const flowControl = { mode, maxRequests: 3 };
      const plugins = [{ type: 'concurrency-detector', parameters: { maxConcurrency: 2 } }];
      return simulate(
        loadScenario({ duration: 3000, seed: 1, servers, traffic, ...sections, plugins, flowControl }).options,
      ).counts;
    };
    expect(run('shadow')).toEqual(run('queue'));
    expect(run('shadow')).not.toEqual(run('admission'));
  });

  it('needs no traffic of its own where there is a record', () => {
    const rows = Array.from({ length: 30 }, (_, index) => ({
      arrivalMs: index * 100,
      promptTokens: 10,
      outputTokens: 10,
    }));
    const { options } = loadScenario({ servers, ...sections }, { rows });
    expect(simulate(options).counts).toMatchObject({ requests: 30, completed: 30 });
    expect(() => loadScenario({ servers, ...sections })).toThrow('traffic');
  });

  it('keeps what its traffic says of clients, and takes the arrivals of the record', () => {
    const rows = [{ arrivalMs: 0, promptTokens: 10, outputTokens: 10 }];
    const traffic = [{ arrivals: { type: 'poisson', rate: 100 }, slo: { total: 1 } }];
    const { options, source } = loadScenario({ duration: 5000, servers, traffic, ...sections }, { rows });
    expect(source.traffic).toMatchObject([{ slo: { total: 1 }, arrivals: { type: 'trace', rows } }]);
    expect(simulate(options).all).toMatchObject({ arrived: 1, goodput: 0 });
  });

  it('is made of a record alone, with servers as its times tell', () => {
    const rows = Array.from({ length: 40 }, (_, index) => {
      const outputTokens = 10 + (index % 4) * 10;
      return { arrivalMs: index * 2000, promptTokens: 100, outputTokens, ttftMs: 20, totalMs: 20 + outputTokens * 10 };
    });
    expect(loadScenario(scenarioFromTrace(rows)).options.duration).toBe(78_001);
  });
});
