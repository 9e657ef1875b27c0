import { describe, expect, it } from 'vitest';
import { budgetHistory } from './budget-history.js';

describe('budgets in random histories', () => {
  it('have spent what the list of all requests says, through endings, moves, restarts and reloads', async () => {
    for (let seed = 1; seed <= 40; seed++) expect(await budgetHistory(seed), `seed ${seed}`).toEqual([]);
  });
});
