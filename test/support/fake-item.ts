/** Requests as policies see them, made of figures: those of the contract suites. */
export { itemView as fakeItem } from '../../src/testing/contracts/views.js';
