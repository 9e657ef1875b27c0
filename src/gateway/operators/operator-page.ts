/** The inspector of a gateway: its page at a path for operators, behind a password that every browser asks for. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  basicLogin,
  type InspectedFlow,
  type InspectedShares,
  type Inspector,
  inspector,
} from '../../observability/inspector/index.js';
import type { InspectorConfig } from '../settings/gateway-config.js';

export class OperatorPage {
  private readonly page: Inspector;
  readonly path: string;

  constructor(
    flow: InspectedFlow,
    { path, password, fairnessIds }: InspectorConfig,
    hosts: (host: string) => boolean,
    shared: (() => InspectedShares) | undefined,
  ) {
    this.path = path;
    const authorize = basicLogin({ password });
    this.page = inspector(flow, { authorize, hosts, fairnessIds, shared });
  }

  answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    return this.page.node(req, res);
  }

  close(): void {
    this.page.close();
  }
}
