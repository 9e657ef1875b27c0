/** Ports for servers that are started by number, and come back on it. */
import { createServer } from 'node:net';

/** Systems take the ports of outgoing connections, and of servers that ask for any port, from above these. */
const first = 20_000;
const end = 32_768;

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** Nobody is given it by chance while its server is away. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = first + Math.floor((end - first) * Math.random());
    if (await isFree(port)) return port;
  }
}
