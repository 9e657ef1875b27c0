/** Model servers on addresses of their own and one port, which show what a vector says of them. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Load {
  readonly waiting?: number;
  readonly running?: number;
  readonly kv?: number;
  readonly loras?: readonly string[];
  readonly healthy?: boolean;
}

/** As the model server of the recordings answers whatever it is asked. */
const answer =
  '{"id":"fake","model":"m","choices":[{"index":0,"text":"a b c","finish_reason":"stop"}],' +
  '"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}';

const gauge = (name: string, value: number): string =>
  `# TYPE vllm:${name} gauge\nvllm:${name}{model_name="m"} ${value}\n`;

function exposition({ waiting = 0, running = 0, kv = 0, loras = [] }: Load): string {
  const adapters = `vllm:lora_requests_info{max_lora="2",running_lora_adapters="${loras.join(',')}",waiting_lora_adapters=""} ${Date.now() / 1000}\n`;
  return (
    gauge('num_requests_waiting', waiting) +
    gauge('num_requests_running', running) +
    gauge('kv_cache_usage_perc', kv) +
    `# TYPE vllm:lora_requests_info gauge\n${adapters}`
  );
}

export class ModelServers {
  readonly loads: Load[];
  private readonly servers: Server[] = [];
  port = 0;

  private constructor(loads: readonly Load[]) {
    this.loads = [...loads];
  }

  static async start(loads: readonly Load[]): Promise<ModelServers> {
    const started = new ModelServers(loads);
    for (const index of loads.keys()) await started.listen(index);
    return started;
  }

  change(index: number, load: Load): void {
    this.loads[index] = { ...this.loads[index], ...load };
  }

  addressOf(index: number): string {
    return `127.0.0.${index + 2}`;
  }

  stop(): void {
    for (const server of this.servers) {
      server.close();
      server.closeAllConnections();
    }
  }

  private async listen(index: number): Promise<void> {
    const server = createServer((req, res) => {
      const load = this.loads[index] ?? {};
      if (load.healthy === false) res.destroy();
      else res.setHeader('content-type', 'application/json').end(req.url === '/metrics' ? exposition(load) : answer);
    });
    await new Promise<void>((resolve, reject) =>
      server.once('error', reject).listen(this.port, this.addressOf(index), resolve),
    );
    this.port = (server.address() as AddressInfo).port;
    this.servers.push(server);
  }
}
