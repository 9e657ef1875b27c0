/** The Lua of the lease script is made of TypeScript, and only of what means the same in both. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { bare } from '../../../scripts/bare-lua.mjs';
import { luaOf } from '../../../scripts/build-store-scripts.mjs';
import { leaseScript } from '../../../src/redis/leases/lease-script.js';

describe('the Lua of leases', () => {
  it('is made of the step that a process runs', () => {
    const source = readFileSync(new URL('../../../src/redis/leases/lease-step.ts', import.meta.url), 'utf8');
    expect(leaseScript.text).toContain(bare(luaOf(source)));
  });

  it('says what the step says', () => {
    const step = `
      function part(sums: { limit: number }, mine: { held: number } | undefined): number {
        const { limit } = sums;
        if (mine === undefined || !(limit > 0)) return 0;
        Object.assign(mine, { held: limit > 2 ? 1 : 0 });
        for (const each of memory.all(sums)) mine.held += each - 1;
        return Math.min(limit, ...memory.all(sums));
      }`;
    expect(luaOf(step)).toBe(`local function part(sums, mine)
  local limit = sums.limit
  if mine == nil or not (limit > 0) then
    return 0
  end
  mine.held = ((limit > 2) and 1 or 0)
  for _, each in ipairs(memory.all(sums)) do
    mine.held = mine.held + (each - 1)
  end
  return math.min(limit, unpack(memory.all(sums)))
end
`);
  });

  it.each([
    ['a method', 'sums.list.map(f);'],
    ['an operator', 'a % b;'],
    ['a statement', 'while (true) a = 1;'],
    ['a name of Lua', 'const end = 1;'],
    ['a spread before the end', 'f(...a, b);'],
    ['a return before the end', 'return 1; f();'],
    ['a default', 'const { a = 1 } = b;'],
  ])('is refused, with its line, where the step uses %s that Lua has otherwise', (_what, body) => {
    expect(() => luaOf(`function f() {\n  ${body}\n}`)).toThrow(/^lease-step\.ts:2: .* has no Lua here/);
  });
});
