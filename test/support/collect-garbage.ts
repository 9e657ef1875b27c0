/** The collector of the heap, for tests of what is kept. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Collects everything that nothing refers to. */
export const collectGarbage = runInNewContext('gc') as () => void;
