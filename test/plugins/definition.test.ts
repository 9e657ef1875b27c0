import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { FlowConfigError } from '../../src/base/faults/flow-config-error.js';
import { parse, value } from '../../src/base/schema/element.js';
import { definePlugin, type PluginBlueprint } from '../../src/plugins/definition.js';
import type { Plugins } from '../../src/plugins/kinds.js';

/** A usage limit that a third party might write, with zod's ordinary (not strict) object. */
const holdback = definePlugin({
  kind: 'usageLimit',
  type: 'holdback',
  parameters: z.object({ ceiling: z.number().min(0).max(1), domain: z.enum(['rank', 'value']).default('rank') }),
  create: ({ ceiling, domain }) => ({
    type: `holdback by ${domain}`,
    computeLimits: (_s, _p, ceilings) => void ceilings.fill(ceiling),
  }),
});

function messageOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof FlowConfigError) return error.message;
    throw error;
  }
  return 'no error';
}

describe('a defined plugin', () => {
  it('is made from its parameters, defaults filled in', () => {
    const ceilings = [1, 1];
    const plugin = holdback.create({ ceiling: 0.5 });
    plugin.computeLimits(0, [1, 0], ceilings);
    expect(plugin.type).toBe('holdback by rank');
    expect(ceilings).toEqual([0.5, 0.5]);
  });

  it('reads no parameters as empty ones', () => {
    const plain = definePlugin({
      kind: 'ordering',
      type: 'x',
      parameters: z.object({}),
      create: () => ({ type: 'x', compare: () => 0 }),
    });
    expect(plain.create().type).toBe('x');
    expect(plain.create(null).type).toBe('x');
  });

  it('lists everything wrong with its parameters, unknown keys included', () => {
    expect(messageOf(() => holdback.create({ ceiling: 2, domian: 'value' }))).toBe(
      `holdback: 2 problems
  parameters.ceiling: expected at most 1; got 2 (number)
  parameters.domian: expected one of the keys ceiling, domain (did you mean "domain"?); got an unknown key`,
    );
    expect(messageOf(() => holdback.create('x'))).toBe('holdback: parameters: expected an object; got "x" (string)');
  });

  it('keeps checks of a schema that it makes strict, and leaves a schema that catches the rest alone', () => {
    const checked = z
      .object({ a: z.number(), b: z.number() })
      .refine(({ a, b }) => a < b, { path: ['b'], error: 'more than a' });
    const plugin = (parameters: z.ZodType): Pick<typeof holdback, 'create'> =>
      definePlugin({
        kind: 'usageLimit',
        type: 'p',
        parameters,
        create: () => ({ type: 'p', computeLimits: () => undefined }),
      });
    expect(messageOf(() => plugin(checked).create({ a: 2, b: 1 }))).toBe(
      'p: parameters.b: expected more than a; got 1 (number)',
    );
    expect(messageOf(() => plugin(z.looseObject({})).create({ anything: 1 }))).toBe('no error');
  });

  it('finds words for zod schemas that bring none', () => {
    const foreign = z.strictObject({
      a: z.number().min(1),
      b: z.number().lt(5),
      c: z.string().min(2),
      d: z.array(z.string()).max(1),
      e: z.enum(['x', 'y']),
      f: z.literal(7),
      g: z.int(),
      h: z.boolean(),
      i: z.union([z.string(), z.number(), z.object({ deep: z.string() })]),
      j: z.string().regex(/^a/),
      k: z.number().multipleOf(3),
      l: z.number({ error: 'a lucky number' }),
      m: z.date(),
      n: z.custom(() => false),
    });
    const input = {
      a: 0,
      b: 5,
      c: 'x',
      d: ['1', '2'],
      e: 'z',
      f: 8,
      g: 1.5,
      h: 1,
      i: { deep: 1 },
      j: 'b',
      k: 4,
      l: 'x',
      m: 1,
      n: 1,
      o: 1,
    };
    const plugin = definePlugin({
      kind: 'ordering',
      type: 'p',
      parameters: foreign,
      create: () => ({ type: 'p', compare: () => 0 }),
    });
    expect(messageOf(() => plugin.create(input)).split('\n  ')).toEqual([
      'p: 15 problems',
      'parameters.a: expected at least 1; got 0 (number)',
      'parameters.b: expected less than 5; got 5 (number)',
      'parameters.c: expected at least 2 characters; got "x" (string)',
      'parameters.d: expected at most 1 entries; got an array of 2',
      'parameters.e: expected one of "x", "y"; got "z" (string)',
      'parameters.f: expected 7; got 8 (number)',
      'parameters.g: expected an integer; got 1.5 (number)',
      'parameters.h: expected true or false; got 1 (number)',
      'parameters.i: expected text or a number or at deep text; got an object with keys deep',
      'parameters.j: expected text in the form /^a/; got "b" (string)',
      'parameters.k: expected a multiple of 3; got 4 (number)',
      'parameters.l: expected a lucky number; got "x" (string)',
      'parameters.m: expected a date; got 1 (number)',
      'parameters.n: expected a valid value; got 1 (number)',
      'parameters.o: expected one of the keys a, b, c, d, e, f, g, h, i, j, k, l, m, n; got an unknown key',
    ]);
  });

  it('takes another Standard Schema, whose messages stay', () => {
    const validate = (given: unknown) =>
      Reflect.get(Object(given), 'weight') === 2
        ? { value: { weight: 2 } }
        : { issues: [{ message: 'the weight 2', path: ['weight', { key: 0 }] }, { message: 'something else' }] };
    const plugin = definePlugin({
      kind: 'ordering',
      type: 'p',
      parameters: { '~standard': { version: 1, vendor: 'own', validate } },
      create: ({ weight }) => ({ type: `p${weight}`, compare: () => 0 }),
    });
    expect(plugin.create({ weight: 2 }).type).toBe('p2');
    expect(messageOf(() => plugin.create({ weight: [3] }))).toBe(
      `p: 2 problems
  parameters.weight[0]: expected the weight 2; got 3 (number)
  parameters: expected something else; got an object with keys weight`,
    );
  });

  it('says that a schema must answer at once', () => {
    const plugin = (parameters: PluginBlueprint<'ordering', object>['parameters']): (() => unknown) =>
      definePlugin({ kind: 'ordering', type: 'p', parameters, create: () => ({ type: 'p', compare: () => 0 }) }).create;
    const validate = async () => ({ value: {} });
    const later = plugin({ '~standard': { version: 1, vendor: 'own', validate } });
    expect(later).toThrow('p: parameters: expected a schema that answers at once; got one that answers later');
    expect(plugin(z.object({}).refine(async () => true))).toThrow('a schema that answers at once');
  });

  it('tells what its factory finds wrong with paths below parameters', () => {
    const strict = definePlugin({
      kind: 'ordering',
      type: 'strict',
      parameters: z.object({ weight: z.number() }),
      create: (parameters) =>
        parse(
          value('something else', (_): _ is Plugins['ordering'] => false),
          parameters,
          'strictOrdering',
        ),
    });
    expect(messageOf(() => strict.create({ weight: 1 }))).toBe(
      'strict: parameters: expected something else; got an object with keys weight',
    );
  });

  it('lets a bug of its factory through as it is', () => {
    const broken = definePlugin({
      kind: 'ordering',
      type: 'broken',
      parameters: z.object({}),
      create: () => {
        throw new RangeError('bug');
      },
    });
    expect(() => broken.create()).toThrow(RangeError);
  });

  it('must create a plugin of its kind', () => {
    const wrong = { kind: 'fairness', type: 'wrong', parameters: z.object({}), create: () => ({ type: 'wrong' }) };
    expect(messageOf(() => definePlugin(wrong as unknown as PluginBlueprint<'fairness', object>).create())).toBe(
      'wrong: create must return a fairness policy: createSelector: expected a method: a fairness policy must have "createSelector"; got nothing',
    );
  });
});

describe('definePlugin', () => {
  it('says what is wrong with a definition', () => {
    const definition = { kind: 'fairnes', type: '', parameters: {}, crate: () => undefined };
    expect(messageOf(() => definePlugin(definition as unknown as PluginBlueprint<'fairness', object>))).toBe(
      `definePlugin: 5 problems
  kind: expected one of "fairness", "ordering", "saturationDetector", "constraint", "usageLimit", "bandOrder", "endpointPicker", "endpointFilter", "admission", "evictionFilter", "evictionOrdering" (did you mean "fairness"?); got "fairnes" (string)
  type: expected the type name that configuration files use; got "" (string)
  parameters: expected a zod 4 schema, or another Standard Schema; got an object with keys (none)
  create: expected a function; got nothing
  crate: expected one of the keys kind, type, parameters, create (did you mean "create"?); got an unknown key`,
    );
  });
});
