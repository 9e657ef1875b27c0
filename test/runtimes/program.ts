/** For runtimes that run programs: the address of the model server is the first argument. */
import { play } from './play.js';

await play(process.argv[2] ?? '');
console.info('ok');
process.exit(0);
