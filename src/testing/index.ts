/** `headgate/testing`: what tests of hosts and of policies need. */
export { ManualClock } from './manual-clock.js';
