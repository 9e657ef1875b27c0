/** Subpath of the package → the file that is its public face. Builds, tests and checks all read it here. */
const folders = {
  types: 'types',
  budgets: 'spending',
  config: 'config',
  http: 'adapters/http',
  node: 'adapters/node',
  express: 'adapters/express',
  koa: 'adapters/koa',
  fastify: 'adapters/fastify',
  hono: 'adapters/hono',
  web: 'adapters/web',
  'ext-proc': 'adapters/ext-proc',
  undici: 'adapters/undici',
  ws: 'adapters/ws',
  fetch: 'fetch',
  ai: 'fetch/ai',
  client: 'client',
  prometheus: 'observability/prometheus',
  opentelemetry: 'observability/opentelemetry',
  inspector: 'observability/inspector',
  endpoints: 'upstream',
  redis: 'redis',
  workers: 'redis/workers',
  gateway: 'gateway',
  testing: 'testing',
  simulator: 'simulator',
};

/** @type {Readonly<Record<string, string>>} `index` is the package itself. */
export const entryPoints = {
  index: 'src/index.ts',
  ...Object.fromEntries(Object.entries(folders).map(([name, folder]) => [name, `src/${folder}/index.ts`])),
};
