// What rows share. A row is `{ id, title, source, published, reference, check, run(kit) }`; `run` returns
// `{ ours, holds, control, note }`. `control` tells of what is not ours: it shows that the row can tell the difference. `kit` is `{ headgate, simulator, readFile, isShort }`: the package as it was built,
// or its source in tests.

/** No limit on what waits. */
const limits = { maxRequests: Number.POSITIVE_INFINITY, maxBytes: Number.POSITIVE_INFINITY };

/** The options of a controller without limits and TTL, one band, and these. */
export const open = (more = {}, band = {}) => ({
  defaultRequestTtl: 0,
  limits,
  bands: [{ priority: 0, limits, ...band }],
  ...more,
});

/** Runs a scenario file of examples/scenarios with other values at some paths. */
export function runScenario({ simulator, readFile }, name, changes = {}) {
  const read = simulator.loadScenario(readFile(`${name}.yaml`), { readFile });
  const source = Object.entries(changes).reduce(
    (file, [path, value]) => simulator.withScenarioValue(file, path, value),
    read.source,
  );
  return simulator.simulate(simulator.loadScenario(source).options);
}

export const within = (value, expected, part) => Math.abs(value / expected - 1) <= part;
export const digits = (value, count = 0) => value.toFixed(count);
export const ms = (value) => (value >= 10_000 ? `${digits(value / 1000, 1)} s` : `${digits(value)} ms`);
