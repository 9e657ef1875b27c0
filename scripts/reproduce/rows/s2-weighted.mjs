import { digits, runScenario } from './support.mjs';

const charge = 'plugins[virtual-token-counter-fairness-policy].parameters.charge';

export const row = {
  id: 'S2',
  title: 'Weighted tenants 1:2:3:4: ratio of service',
  source: 'Sheng et al., OSDI ’24, weighted VTC; raw results of the artifact',
  published: '1 : 2.000 : 3.000 : 4.000',
  reference: 'predicted 1:2.00:3.00:3.98, streamed 1:2.04:3.15:4.11',
  check: '±3 % with predicted charges, ±6 % with streamed ones',
  run(kit) {
    const ratios = (changes) => {
      const { tenants } = runScenario(kit, 'vtc-weighted', changes);
      return [1, 2, 3, 4].map((weight) => tenants[`weight-${weight}`].service / tenants['weight-1'].service);
    };
    const [predicted, streamed] = [ratios({}), ratios({ [charge]: 'stream', usageReports: 'stream' })];
    const fits = (found, part) => found.every((ratio, index) => Math.abs(ratio / (index + 1) - 1) <= part);
    const told = (found) => found.map((ratio) => digits(ratio, 2)).join(':');
    return {
      ours: `predicted ${told(predicted)}, streamed ${told(streamed)}`,
      holds: fits(predicted, 0.03) && fits(streamed, 0.06),
      note: 'All answers have 256 tokens, so that this row does not test prediction.',
    };
  },
};
