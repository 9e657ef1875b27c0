// @ts-check
// One replica: the gateway of the file, on the port that the primary shares among its workers.

import { createGateway, loadGatewayConfig } from 'headgate/gateway';

const { FILE = '', ...env } = process.env;
const gateway = await createGateway(loadGatewayConfig(FILE, { env }));

/** What this replica holds, for the primary to show. */
setInterval(() => {
  const [lease] = gateway.shares;
  if (lease !== undefined) process.send?.({ pid: process.pid, cap: lease.cap, inFlight: lease.inFlight });
}, 200);

process.on('disconnect', () => process.exit());
process.on('SIGTERM', async () => {
  await gateway.close();
  process.exit();
});
