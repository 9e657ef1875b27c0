import { maxMinShares } from '../../max-min-shares.mjs';
import { digits, open } from './support.mjs';

/**
 * threads, calls of each, seconds of one call, seconds of thought after it, seats. Source: queueset_test.go of the
 * Kubernetes API server.
 */
const cases = [
  {
    name: 'uniform flows',
    limit: 4,
    seconds: 50,
    clients: [
      [8, 20, 1, 0.999999999, 1],
      [8, 20, 1, 0.999999999, 1],
    ],
  },
  {
    name: 'different flows, equal shares',
    limit: 4,
    seconds: 40,
    clients: [
      [8, 20, 1, 1, 1],
      [7, 30, 1, 0.5, 1],
    ],
  },
  {
    name: 'different flows, unequal shares',
    limit: 3,
    seconds: 20,
    clients: [
      [4, 20, 1, 0.999999999, 1],
      [2, 20, 1, 0.999999999, 1],
    ],
  },
  {
    name: 'different widths',
    limit: 6,
    seconds: 20,
    clients: [
      [10, 40, 1, 0, 1],
      [10, 40, 1, 0, 2],
    ],
  },
];

export const row = {
  id: 'S4',
  title: 'Kubernetes API priority and fairness: mean seats in use, against max-min shares',
  source: 'apiserver, queueset_test.go; the last case with widths 1 and 2, where turns by request must fail',
  published: 'within 1 % of the shares',
  reference: '2.0/2.0; 1.983/2.017; turns by request 2.0/4.0 on different widths',
  check: 'within 1 % of max-min shares; round robin by request not, on different widths',
  run({ headgate, simulator }) {
    const seats = ({ limit, seconds, clients }, fairness) => {
      const result = simulator.simulate({
        duration: seconds * 1000,
        drain: 0,
        servers: [{ model: 'slots', slots: limit }],
        traffic: clients.map(([threads, requestsPerThread, exec, think, width], index) => ({
          tenant: `client-${index}`,
          arrivals: { type: 'closed-loop', threads, requestsPerThread, think: think * 1000, stagger: 90e-6 },
          startAt: index * 20e-6,
          serviceTime: exec * 1000,
          seats: width,
        })),
        flow: () => open({ saturationDetector: simulator.serverRoomDetector() }, { fairness: fairness() }),
      });
      return clients.map((_, index) => result.tenants[`client-${index}`].meanRunning);
    };
    // A request books its seats as tokens; all calls take a second, so that seats are the cost.
    const bySeats = () => headgate.virtualTokenCounter({ cost: ({ promptTokens }) => promptTokens });
    const found = cases.map((one) => {
      const demands = one.clients.map(([threads, , exec, think, width]) => (threads * width * exec) / (exec + think));
      return { ...one, seats: seats(one, bySeats), shares: maxMinShares(demands, one.limit) };
    });
    const control = seats(cases[3], () => headgate.roundRobin());
    const told = (figures) => figures.map((figure) => digits(figure, 3)).join('/');
    return {
      ours: `${found.map(({ name, seats: taken }) => `${name} ${told(taken)}`).join('; ')}; round robin on widths ${told(control)}`,
      holds:
        found.every(({ seats: taken, shares }) =>
          taken.every((figure, index) => Math.abs(figure / shares[index] - 1) <= 0.01),
        ) && control[1] / control[0] > 1.5,
    };
  },
};
