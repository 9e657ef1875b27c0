/** The elements of the client's options. They take Infinity, which the numbers of the other options do not. */
import * as s from '../base/schema/schema.js';

/* @__NO_SIDE_EFFECTS__ */ export function numberFrom(from: number, what = 'a number'): s.Schema<number> {
  return s.value(`${what} from ${from} up`, (given): given is number => typeof given === 'number' && given >= from);
}

/** A span of time; Infinity: without end. */
/* @__NO_SIDE_EFFECTS__ */ export function msAboveZero(): s.Schema<number> {
  return s.value('ms above 0', (given): given is number => typeof given === 'number' && given > 0);
}
