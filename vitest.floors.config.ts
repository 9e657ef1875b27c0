// The tests of what uses peers, with each peer at the lowest version that the package allows. Run by
// scripts/test-floors.mjs, which installs them.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig, mergeConfig } from 'vitest/config';
import manifest from './package.json' with { type: 'json' };
import { common } from './vitest.common.js';

const folder = process.env.FLOORS_FOLDER;
if (folder === undefined) throw new Error('run it by npm run test:floors');

const installed = readdirSync(join(folder, 'node_modules'));

export default mergeConfig(
  common,
  defineConfig({
    resolve: {
      alias: Object.keys(manifest.peerDependencies)
        .filter((name) => installed.includes(name.split('/')[0] as string))
        .map((name) => ({ find: new RegExp(`^${name}(?=/|$)`), replacement: join(folder, 'node_modules', name) })),
    },
    test: {
      include: ['test/**/*.test.ts'],
      typecheck: { enabled: false },
      outputFile: { json: './test-results/floors.json' },
    },
  }),
);
