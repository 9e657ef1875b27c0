import { digits, open } from './support.mjs';

export const row = {
  id: 'S7',
  title: 'Deadlines of 2 to 20 service times at load 1.2: deadlines met, as part of what the server can do',
  source: 'EDF collapses in overload: Locke, “Best-effort decision making for real-time scheduling” (1986)',
  published: 'EDF collapses',
  reference: 'EDF .01; EDF that drops what is infeasible .92; first come, first served .01',
  check:
    'constant service, told exactly: EDF at most .05, with the drop at least .9; exponential service, learnt: the drop meets more',
  run({ headgate, simulator, isShort }) {
    const seconds = isShort ? 100 : 1000;
    const met = (ordering, serviceTime = 10) => {
      const { all } = simulator.simulate({
        duration: seconds * 1000,
        servers: [{ model: 'slots', slots: 1, serviceTime }],
        traffic: [
          { tenant: 'a', arrivals: { type: 'poisson', rate: 120 }, sloTtft: { type: 'uniform', from: 20, to: 200 } },
        ],
        flow: () =>
          open({ saturationDetector: headgate.concurrencyDetector({ maxConcurrency: 1 }) }, { ordering: ordering() }),
      });
      return all.good / (seconds * 100);
    };
    const exponential = { type: 'exponential', mean: 10 };
    const [fcfs, edf, dropping, edfVaries, learnt] = [
      met(headgate.fcfs),
      met(headgate.sloDeadline),
      met(() => headgate.edf({ dropInfeasible: true, firstTokenAfter: 10 })),
      met(headgate.sloDeadline, exponential),
      met(() => headgate.edf({ dropInfeasible: true }), exponential),
    ];
    return {
      ours: `constant service: EDF ${digits(edf, 3)}; with the drop ${digits(dropping, 3)}; FCFS ${digits(fcfs, 3)}. Exponential service: EDF ${digits(edfVaries, 3)}; with the drop ${digits(learnt, 3)}`,
      holds: edf <= 0.05 && dropping >= 0.9 && learnt > edfVaries,
      note: 'EDF is `slo-deadline-ordering-policy` with no TTL; the drop is `edf({ dropInfeasible: true })`. That it meets nearly all holds for service of one length alone, and told exactly (`firstTokenAfter: 10`). Where service varies and its times are learnt, nobody knows which request will be short.',
    };
  },
};
