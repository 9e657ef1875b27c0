/** Which models may be labels, each a series for ever. Invariant: the file's, and a hundred that servers took. */
import type { GatewayConfig } from '../settings/gateway-config.js';
import { modelsOf } from '../shared/model-label.js';

const mostModels = 100;

/** The names that a file gives to models. */
interface NamedModels extends Pick<GatewayConfig, 'upstreams'> {
  readonly models: Pick<GatewayConfig['models'], 'aliases' | 'list'>;
}

export class KnownModels {
  private inFile: ReadonlySet<string> = new Set();
  private readonly answered = new Set<string>();

  constructor(config: NamedModels) {
    this.configure(config);
  }

  configure({ models, upstreams }: NamedModels): void {
    const { aliases, list = [] } = models;
    this.inFile = new Set([...Object.entries(aliases).flat(), ...list, ...upstreams.flatMap(modelsOf)]);
  }

  /** A server has answered a request for the model, under the name that the server knows, with success. */
  served(model: string, targetModel: string | undefined): void {
    for (const name of [model, targetModel]) {
      if (name !== undefined && this.answered.size < mostModels && !this.inFile.has(name)) this.answered.add(name);
    }
  }

  /** Empty for a request that names none. */
  labelOf(model: string | undefined): string {
    if (model === undefined || model === '') return '';
    return this.inFile.has(model) || this.answered.has(model) ? model : 'other';
  }
}
