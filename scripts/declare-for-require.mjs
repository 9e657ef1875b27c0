// Declarations for `require`: those for `import`, with the endings of CommonJS. They say the same, so that one pass of
// the compiler is enough.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = process.argv[2] ?? fileURLToPath(new URL('../dist', import.meta.url));

for (const name of readdirSync(folder).filter((file) => file.endsWith('.d.ts'))) {
  const text = readFileSync(join(folder, name), 'utf8');
  // Only what is in this folder has another ending; other packages choose by themselves.
  const forRequire = text.replace(/(from |import |import\()('|")(\.\/[^'"]+)\.js\2/g, '$1$2$3.cjs$2');
  writeFileSync(join(folder, name.replace(/\.d\.ts$/, '.d.cts')), forRequire);
}
