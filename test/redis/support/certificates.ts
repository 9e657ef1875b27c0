/** Certificates for servers in tests: an authority, a server that it vouches for, and an authority that nobody knows. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../support/free-port.js';
import { Store, type StoreKind } from './stores.js';

export interface Certificates {
  readonly folder: string;
  /** PEM. */
  readonly ca: string;
  /** PEM of an authority that has not signed the server's. */
  readonly otherCa: string;
  remove(): void;
}

function openssl(folder: string, ...options: readonly string[]): void {
  const { status, error, stderr } = spawnSync('openssl', options, { cwd: folder, encoding: 'utf8' });
  if (status !== 0) throw new Error(`openssl ${options.join(' ')}: ${error?.message ?? stderr}`);
}

/** For `localhost` and 127.0.0.1, for two days. */
export function makeCertificates(): Certificates {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-certificates-'));
  const newKey = ['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'] as const;
  for (const name of ['ca', 'other'])
    openssl(
      folder,
      ...newKey,
      '-x509',
      '-days',
      '2',
      '-subj',
      `/CN=${name}`,
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.pem`,
    );
  openssl(folder, ...newKey, '-subj', '/CN=localhost', '-keyout', 'server.key', '-out', 'server.csr');
  writeFileSync(join(folder, 'names'), 'subjectAltName=DNS:localhost,IP:127.0.0.1');
  const authority = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial'];
  openssl(
    folder,
    'x509',
    '-req',
    '-in',
    'server.csr',
    ...authority,
    '-days',
    '2',
    '-extfile',
    'names',
    '-out',
    'server.pem',
  );
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
  return {
    folder,
    ca: read('ca.pem'),
    otherCa: read('other.pem'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** A server with a second port for TLS. */
export async function startWithTls(
  kind: StoreKind,
  { folder }: Certificates,
  options: readonly string[] = [],
): Promise<{ readonly store: Store; readonly tlsPort: number }> {
  const tlsPort = await freePort();
  const file = (name: string): string => join(folder, name);
  const tls = [
    ...['--tls-port', String(tlsPort), '--tls-auth-clients', 'no'],
    ...[
      '--tls-cert-file',
      file('server.pem'),
      '--tls-key-file',
      file('server.key'),
      '--tls-ca-cert-file',
      file('ca.pem'),
    ],
  ];
  return { store: await Store.start(kind, [...tls, ...options]), tlsPort };
}
