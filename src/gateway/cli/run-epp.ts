/** `headgate epp`: an endpoint picker until a signal ends it. */
import { createEpp, type EppConfig, importPlugins, loadEppConfig } from '../index.js';
import type { GatewayArguments } from './arguments.js';
import { runService } from './run-service.js';

/** Resolves to the exit status. */
export function runEpp(command: GatewayArguments): Promise<number> {
  return runService(command, async ({ source, log, file, plugins }) => {
    const load = async (text: string): Promise<EppConfig> => {
      const config = loadEppConfig(text, { registry: await importPlugins({}, plugins) });
      for (const message of config.warnings) log('warn', 'config', { file, message });
      return config;
    };
    const epp = await createEpp(await load(source), { log });
    return {
      listening: { ...epp.ports, endpoints: epp.pool.endpoints.length },
      stats: () => epp.flow.stats(),
      async reload(text) {
        epp.reconfigure(await load(text));
        return { endpoints: epp.pool.endpoints.length };
      },
      close: () => epp.close(),
    };
  });
}
