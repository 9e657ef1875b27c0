/** Randomness that repeats, as the contract suites have it. */
export { Random } from '../../src/testing/contracts/views.js';
