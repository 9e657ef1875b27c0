// Prints `N passed, N failed`, summed over vitest's JSON results. A file that failed outside its tests counts as one
// failure.
import { existsSync, readFileSync } from 'node:fs';

let passed = 0;
let failed = 0;
for (const path of process.argv.slice(2).filter((path) => existsSync(path))) {
  const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(path, 'utf8'));
  const broken = testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.every((test) => test.status !== 'failed'),
  );
  passed += numPassedTests;
  failed += numFailedTests + broken.length;
}
console.log(`${passed} passed, ${failed} failed`);
