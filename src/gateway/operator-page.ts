/** The inspector of a gateway: its page at a path for operators, behind a password that every browser asks for. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { basicLogin, type InspectedFlow, type InspectedShares, type Inspector, inspector } from '../observability/inspector/index.js';
import type { InspectorConfig } from './gateway-config.js';

/** Answers its own path, and tells by false that a path is another. */
export class OperatorPage {
  private readonly page: Inspector;
  private readonly path: string;

  constructor(flow: InspectedFlow, { path, password, fairnessIds }: InspectorConfig, shared: (() => InspectedShares) | undefined) {
    this.path = path;
    this.page = inspector(flow, { authorize: basicLogin({ password }), fairnessIds, shared });
  }

  async answer(path: string, req: IncomingMessage, res: ServerResponse): Promise<boolean> {
    if (path !== this.path) return false;
    await this.page.node(req, res);
    return true;
  }

  close(): void {
    this.page.close();
  }
}
