/** A reporter of node:test: one line of JSON for each test that ended. */
export default async function* lines(events) {
  for await (const { type, data } of events) {
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const { name, nesting, file, skip, todo } = data;
    if (skip !== undefined || todo !== undefined) continue;
    yield `${JSON.stringify({ name, nesting, file, isPassed: type === 'test:pass' })}\n`;
  }
}
