import { digits, open } from './support.mjs';

export const row = {
  id: 'S6',
  title:
    'Queue discipline at load 1.3, clients that leave after 500 ms: good answers, as part of what the server can do',
  source: 'service of 10 ms; Facebook, “Fail at scale” (2015), for the rule',
  published: '–',
  reference: 'first come, first served .06; dropping what is late .93',
  check: 'FIFO below .1; dropping what is late above .85',
  run({ headgate, simulator, isShort }) {
    const seconds = isShort ? 60 : 600;
    const good = (flow, client) => {
      const { all } = simulator.simulate({
        duration: seconds * 1000,
        servers: [{ model: 'slots', slots: 1, serviceTime: 10 }],
        traffic: [{ tenant: 'a', arrivals: { type: 'poisson', rate: 130 }, slo: { total: 500 }, client }],
        flow: () => open({ saturationDetector: headgate.concurrencyDetector({ maxConcurrency: 1 }), ...flow }),
      });
      return all.good / (seconds * 100);
    };
    const fifo = good({}, { deadline: 500, tellsGateway: false });
    const dropping = good({ defaultRequestTtl: 490 }, {});
    return {
      ours: `FIFO ${digits(fifo, 3)}; TTL of 490 ms ${digits(dropping, 3)}`,
      holds: fifo < 0.1 && dropping > 0.85,
    };
  },
};
