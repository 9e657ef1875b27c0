/**
 * The layers of src, and what each folder may import. This is the one place that says it: the linter's rules
 * (`biome.layers.json`) are made of it, and `test/structural/layers.test.ts` holds every import against it.
 */

/** Lowest first. A folder may import those before it. Folders of one line are strangers to each other. */
export const layers: readonly (readonly string[])[] = [
  ['base'],
  ['tiers'],
  ['endpoints'],
  ['gate'],
  ['constraints', 'admission', 'eviction'],
  ['plugins'],
  ['core'],
  ['index.ts'],
  ['types'],
  ['adapters', 'spending', 'config', 'upstream', 'observability', 'client', 'redis', 'testing'],
  ['simulator', 'fetch'],
  ['gateway'],
];

/** What more than one bundle may have a copy of: it has no state, and no class but one that is known by its brand. */
const plain: readonly string[] = [
  'base/*.ts',
  'base/faults/did-you-mean.ts',
  'base/faults/flow-config-error.ts',
  'base/headers/**',
  'base/schema/**',
  'base/stream/**',
];
/** There is one copy, the core's: a second one would know nothing of what the first has noted. */
const withState: readonly string[] = ['base/plugin-origin.ts'];
/** A subpath reaches the core through the package's index, so that every class exists once. */
const ofSubpaths = [
  ...plain,
  'base/faults/guarded-events.ts',
  'base/queues/linked-list.ts',
  'index.ts',
  'types/index.ts',
];
/** What a user of the package can import: the index of every folder below. */
const doors = '**/index.ts';
/** Its files are read as the library's are. It is a function without state. */
const yaml = 'config/read-yaml.ts';
/** What an adapter is made of: the gateway is one itself, and its request is its exchange. */
const adapterParts = [
  'adapters/http/http-flow-control.ts',
  'adapters/http/request-flow.ts',
  'adapters/http/to-http-response.ts',
  'adapters/node/node-exchange.ts',
  'adapters/node/on-response-end.ts',
  'adapters/node/respond.ts',
  'adapters/http/life-signs.ts',
  'adapters/ws/turn.ts',
  'adapters/ws/turn-events.ts',
  'adapters/ws/turn-socket.ts',
];

const belowIndex = layers
  .slice(
    0,
    layers.findIndex(([room]) => room === 'index.ts'),
  )
  .flat();

/** Above the index, the layer alone does not say what a folder may import. */
const exceptions: Readonly<Record<string, readonly string[]>> = {
  // It has no code: what is written in any folder may be named.
  types: [...belowIndex.map((room) => `${room}/**`), 'index.ts'],
  // What brings its own code into the core: nothing else has it.
  spending: ['index.ts', 'constraints/budgets/**', 'core/budgets.ts'],
  // Browsers need not download the core.
  client: [...plain, 'index.ts', 'types/index.ts'],
  // The audit reads plain state that no user of the package may see. It makes no object of the core's classes.
  // The timers of its clock are a heap, whose copy has no state but its own.
  testing: [...ofSubpaths, 'core/inspect/audit.ts', 'base/queues/heap-queue.ts'],
  // Its clock is that of tests, moved from event to event.
  simulator: [...plain, 'testing/manual-clock.ts', doors, yaml],
  fetch: [...plain, doors],
  gateway: [...plain, doors, yaml, ...adapterParts],
};

const rooms = layers.flat();
const indexRank = rankOf('index.ts');

export function rankOf(room: string): number {
  return layers.findIndex((layer) => layer.includes(room));
}

/** The folder at the top of src that a file is in. */
export function roomOf(file: string): string {
  return file.split('/')[0]!;
}

/** True if one file of src may import another, types included. */
export function mayImport(from: string, to: string): boolean {
  const isOpen = openFiles.get(roomOf(from))!.test(to) && !(isAboveIndex(roomOf(from)) && withState.includes(to));
  return roomOf(to) === roomOf(from) || isOpen;
}

function isAboveIndex(room: string): boolean {
  return rankOf(room) > indexRank;
}

/** Globs of what the files of a room may import of other rooms. */
function openTo(room: string): readonly string[] {
  const below = layers.slice(0, rankOf(room)).flat();
  if (!isAboveIndex(room)) return below.map((other) => `${other}/**`);
  const withDoors = below.filter(isAboveIndex).map((other) => `${other}/${doors}`);
  const open = exceptions[room] ?? ofSubpaths;
  return open.flatMap((glob) => (glob === doors ? ['index.ts', ...withDoors] : [glob]));
}

/** The same as one expression for each room. */
const openFiles = new Map(rooms.map((room) => [room, new RegExp(`^(?:${openTo(room).map(patternOf).join('|')})$`)]));

function patternOf(glob: string): string {
  const signs: Readonly<Record<string, string>> = { '**/': '(?:.*/)?', '**': '.*', '*': '[^/]*', '.': '\\.' };
  return glob.replaceAll(/\*\*\/|\*\*|\*|\./g, (sign) => signs[sign]!);
}

/** The same as rules of the linter. It sees the text of an import, such as `../../gate/gate.js`, and not the file. */
export function linterRules(): { readonly overrides: readonly object[] } {
  return { overrides: rooms.map(linterRuleOf) };
}

function linterRuleOf(room: string): object {
  const open = openTo(room);
  const closed = rooms.filter((other) => other !== room && other !== 'index.ts' && !open.includes(`${other}/**`));
  const group = [
    `**/{${closed}}/**`,
    // No folder below the index has an index of its own.
    ...(rankOf(room) < indexRank ? ['**/index.js'] : []),
    ...open.filter((glob) => closed.includes(roomOf(glob))).map((glob) => `!**/${glob.replace(/\.ts$/, '.js')}`),
    ...(isAboveIndex(room) ? withState.map((file) => `**/${file.replace(/\.ts$/, '.js')}`) : []),
  ];
  const message = 'The layers of src are in docs/architecture.md; test/support/layers.ts says what may import what.';
  return {
    includes: [room === 'index.ts' ? 'src/index.ts' : `src/${room}/**`],
    linter: {
      rules: { style: { noRestrictedImports: { level: 'error', options: { patterns: [{ group, message }] } } } },
    },
  };
}
