/** Which versions of the site have pages of their own. */
import { expect, it } from 'vitest';
import { newestOfEachMinor } from '../../site/versions.mjs';

it('the newest release of each minor version has a folder, the newest first', () => {
  const tags = ['v0.9.0', 'v0.10.1', 'v0.10.0', 'v1.0.0-rc.1', 'nightly', 'v0.2.11', 'v0.2.9', ''];
  expect(newestOfEachMinor(tags)).toEqual([
    { ref: 'v0.10.1', folder: 'v0.10/' },
    { ref: 'v0.9.0', folder: 'v0.9/' },
    { ref: 'v0.2.11', folder: 'v0.2/' },
  ]);
});
