import { digits, open } from './support.mjs';

export const row = {
  id: 'S5',
  title: 'Adaptive limit in a closed loop: share of capacity used',
  source:
    'C = 10 and 50 servers, log-normal service of 100 ms with σ = 0, .3 and 1; always as many in flight as the limit lets',
  published: '–',
  reference: 'windowed AIMD 98.7–100 %; one decision for each sample 44–84 %',
  check: 'windowed at least .97 in all six; the control below .9',
  run({ headgate, simulator, isShort }) {
    const used = (slots, sigma, options) => {
      const duration = (isShort ? 200 : 800) * 1000;
      const { all } = simulator.simulate({
        duration,
        warmUp: duration / 2,
        drain: 0,
        servers: [{ model: 'slots', slots, serviceTime: { type: 'lognormal', mean: 100, sigma } }],
        traffic: [{ tenant: 'a', arrivals: { type: 'closed-loop', threads: 1200 } }],
        flow: () => open({ saturationDetector: headgate.aimdLatency(options) }),
      });
      return all.meanRunning / slots;
    };
    const grid = [10, 50].flatMap((slots) => [0, 0.3, 1].map((sigma) => [slots, sigma]));
    const windowed = grid.map(([slots, sigma]) => used(slots, sigma, { targetMs: 200 }));
    const control = grid.map(([slots, sigma]) =>
      used(slots, Math.max(sigma, 0.01), { targetMs: 300, windowMs: 1e-6, minSamples: 1 }),
    );
    const told = (figures) => figures.map((figure) => digits(figure, 2)).join(' ');
    return {
      ours: `windowed ${told(windowed)}`,
      control: `one decision for each sample ${told(control)}`,
      holds: windowed.every((figure) => figure >= 0.97) && control.every((figure) => figure < 0.9),
      note: 'The control is a configuration that nobody should use. It has σ = .01 instead of 0: requests that end at one instant are one window of the detector, however short.',
    };
  },
};
