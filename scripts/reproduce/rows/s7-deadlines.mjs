import { digits, open } from './support.mjs';

export const row = {
  id: 'S7',
  title: 'Deadlines of 2 to 20 service times at load 1.2: deadlines met, as part of what the server can do',
  source: 'EDF collapses in overload: Locke, “Best-effort decision making for real-time scheduling” (1986)',
  published: 'EDF collapses',
  reference: 'EDF .01; EDF that drops what is infeasible .92; first come, first served .01',
  check: 'EDF at most .05; with the drop at least .9',
  run({ headgate, simulator, isShort }) {
    const seconds = isShort ? 100 : 1000;
    const met = (ordering) => {
      const { all } = simulator.simulate({
        duration: seconds * 1000,
        servers: [{ model: 'slots', slots: 1, serviceTime: 10 }],
        traffic: [
          { tenant: 'a', arrivals: { type: 'poisson', rate: 120 }, sloTtft: { type: 'uniform', from: 20, to: 200 } },
        ],
        flow: () =>
          open({ saturationDetector: headgate.concurrencyDetector({ maxConcurrency: 1 }) }, { ordering: ordering() }),
      });
      return all.good / (seconds * 100);
    };
    const [fcfs, edf, dropping] = [
      met(headgate.fcfs),
      met(headgate.sloDeadline),
      met(() => headgate.edf({ dropInfeasible: true, firstTokenAfter: 10 })),
    ];
    return {
      ours: `EDF ${digits(edf, 3)}; with the drop ${digits(dropping, 3)}; FCFS ${digits(fcfs, 3)}`,
      holds: edf <= 0.05 && dropping >= 0.9,
      note: 'EDF is `slo-deadline-ordering-policy` with no TTL; the drop is `edf({ dropInfeasible: true })`, told that a first token takes 10 ms.',
    };
  },
};
