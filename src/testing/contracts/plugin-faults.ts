/** The ways in which a method of a plugin can break its contract: a table of answers and exceptions. */

/** One way to break every contract. */
export interface PluginFault {
  readonly name: string;
  /** Answers a new value each time, or throws. */
  act(): unknown;
}

function thrown(what: unknown): never {
  throw what;
}

/** A value on which every operation throws. */
function untouchable<T extends object>(target: T): T {
  const refuse = (): never => thrown(new Error('this object refuses every operation'));
  return new Proxy(target, new Proxy<ProxyHandler<T>>({}, { get: () => refuse }));
}

function revoked(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

function thenable(then: (resolve: (value: unknown) => void, reject: (error: unknown) => void) => void): object {
  return Object.fromEntries([['then', then]]);
}

const bare = (): unknown => Object.create(null);

const answers: Readonly<Record<string, () => unknown>> = {
  nothing: () => undefined,
  null: () => null,
  NaN: () => NaN,
  'a negative number': () => -1,
  infinity: () => Infinity,
  'the largest number': () => Number.MAX_VALUE,
  'an empty text': () => '',
  'a number as text': () => '0.5',
  true: () => true,
  'a bigint': () => 1n,
  'a symbol': () => Symbol('nonsense'),
  'an empty object': () => ({}),
  'an object that cannot become text': bare,
  'an object whose text throws': () => ({
    toString: () => thrown(new Error('toString')),
    valueOf: () => thrown(new Error('valueOf')),
  }),
  'an empty array': () => [],
  'an array that holds null': () => [null],
  'an array with holes': () => new Array(3),
  'an array that cannot become text': () => [bare()],
  'a function': () => () => 0,
  'a map': () => new Map(),
  'a promise': () => Promise.resolve('admit'),
  'a promise that is rejected': () => Promise.reject(new Error('rejected on purpose')),
  'a thenable that throws': () => thenable(() => thrown(new Error('then'))),
  'a thenable that rejects': () => thenable((_, reject) => reject(bare())),
  'an object that refuses every operation': () => untouchable({}),
  'an array that refuses every operation': () => untouchable([null]),
  'a revoked object': () => revoked({}),
  'a revoked array': () => revoked([]),
};

const exceptions: Readonly<Record<string, () => unknown>> = {
  'an error': () => new Error('a fault on purpose'),
  nothing: () => undefined,
  null: () => null,
  'an object that cannot become text': bare,
  'an object that refuses every operation': () => untouchable({}),
};

export const pluginFaults: readonly PluginFault[] = [
  ...Object.entries(answers).map(([name, act]) => ({ name: `answers ${name}`, act })),
  ...Object.entries(exceptions).map(([name, make]) => ({ name: `throws ${name}`, act: () => thrown(make()) })),
];
