/** The times and limits of a gateway, with their defaults. */
import type { GatewayConfig } from './gateway-config.js';
import type { GatewayFile } from './gateway-file.js';

export function resolveTimeouts(timeouts: GatewayFile['timeouts']): GatewayConfig['timeouts'] {
  return {
    connectMs: timeouts?.connect ?? 5_000,
    uploadMs: timeouts?.upload ?? 10_000,
    firstTokenMs: timeouts?.firstToken,
    firstTokenMsByModel: timeouts?.firstTokenByModel ?? {},
    firstByteMs: timeouts?.firstByte ?? 300_000,
    idleMs: timeouts?.idle ?? 60_000,
    totalMs: timeouts?.total ?? 1_800_000,
  };
}

export function resolveLimits(limits: GatewayFile['limits']): GatewayConfig['limits'] {
  return {
    maxRequestBytes: limits?.maxRequestBytes ?? 8 * 2 ** 20,
    maxReadingBytes: limits?.maxReadingBytes ?? 256 * 2 ** 20,
    maxHeaderBytes: limits?.maxHeaderBytes ?? 16_384,
    minUploadBytesPerSecond: limits?.minUploadRate ?? 4_096,
    maxConnections: limits?.maxConnections ?? 16_384,
  };
}
