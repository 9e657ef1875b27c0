/** deploy/: the image, the manifests and the unit are well-formed, agree with one another, and run what they say. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { validate } from 'dockerfile-utils';
import type { Deployment } from 'kubernetes-types/apps/v1.js';
import type { HorizontalPodAutoscaler } from 'kubernetes-types/autoscaling/v2.js';
import type { ConfigMap, Service } from 'kubernetes-types/core/v1.js';
import type { NetworkPolicy } from 'kubernetes-types/networking/v1.js';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.js';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { loadGatewayConfig } from '../../src/gateway/index.js';
import { problemsOf } from './kubernetes-problems.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string): string => readFileSync(root + path, 'utf8');

describe('deploy/Dockerfile', () => {
  const text = read('deploy/Dockerfile');
  /** Instructions without comments, each on a line of its own. */
  const lines = text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n');
  const last = (instruction: string): string =>
    lines
      .filter((line) => line.startsWith(`${instruction} `))
      .at(-1)
      ?.slice(instruction.length + 1) ?? '';

  it('has no fault that a linter knows', () => {
    expect(validate(text).map(({ message }) => message)).toEqual([]);
  });

  it('installs in one stage and runs in another, not as root', () => {
    expect(lines.filter((line) => line.startsWith('FROM '))).toHaveLength(2);
    expect(last('COPY')).toMatch(/^--from=install /);
    expect(last('USER')).toBe('1000:1000');
  });

  it('starts the command itself, and asks it how it is', () => {
    expect(JSON.parse(last('ENTRYPOINT'))).toEqual(['/app/node_modules/.bin/headgate']);
    expect(JSON.parse(last('CMD'))).toEqual([
      'gateway',
      '--config',
      '/etc/headgate/gateway.yaml',
      '--log-format',
      'json',
    ]);
    const [program, , code] = JSON.parse(/CMD (\[.*\])/.exec(last('HEALTHCHECK'))![1]!) as string[];
    expect(program).toBe('node');
    // Nothing listens on this port: the check says so by its exit status.
    expect(spawnSync(process.execPath, ['-e', code!.replace(':8080', ':9')]).status).toBe(1);
  });
});

const secrets = { ADMIN_TOKEN: 'a', CHAT_KEY: 'b', NIGHTLY_KEY: 'c' };
const documents = ['gateway', 'autoscaling'].flatMap((name) =>
  parseAllDocuments(read(`deploy/kubernetes/${name}.yaml`)),
);
const manifests = documents.map(
  (document) => document.toJS() as { apiVersion: string; kind: string; metadata: { name: string } },
);
function manifest<T>(kind: string, name = 'headgate'): T {
  return manifests.find((one) => one.kind === kind && one.metadata.name === name) as T;
}

describe('deploy/kubernetes', () => {
  it('is YAML without faults', () => {
    expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([]);
    expect(manifests.map(({ kind }) => kind).sort()).toEqual([
      'ConfigMap',
      'Deployment',
      'HorizontalPodAutoscaler',
      'NetworkPolicy',
      'PodDisruptionBudget',
      'ScaledObject',
      'Service',
      'Service',
    ]);
  });

  it('has manifests that the schemas of Kubernetes accept: no unknown field, no wrong type, nothing missing', () => {
    const checked = manifests.filter(({ apiVersion }) => !apiVersion.startsWith('keda.sh/'));
    expect(problemsOf(checked)).toEqual([]);
    // The check can fail.
    const deployment = structuredClone(manifest<Deployment>('Deployment'));
    Object.assign(deployment.spec!.template.spec!, { terminationGraceSeconds: 60 });
    expect(problemsOf([deployment as never])).toEqual([expect.stringContaining('terminationGraceSeconds')]);
  });

  it('has a gateway file that loads without warnings, and drains within the time that is granted', () => {
    const { data } = manifest<ConfigMap>('ConfigMap');
    const { drain, warnings } = loadGatewayConfig(data!['gateway.yaml']!, { env: secrets });
    expect(warnings).toEqual([]);
    const { delay, waiting, streams } = drain;
    const { terminationGracePeriodSeconds, containers } = manifest<Deployment>('Deployment').spec!.template.spec!;
    expect(terminationGracePeriodSeconds! * 1_000).toBeGreaterThan(delay + waiting + streams);
    const { periodSeconds, failureThreshold } = containers[0]!.readinessProbe!;
    expect(periodSeconds! * failureThreshold! * 1_000).toBeLessThan(delay);
    expect(containers[0]!.env!.map(({ name }) => name).sort()).toEqual(Object.keys(secrets));
  });

  it('runs without root, without a writable file system, and without rights', () => {
    const { securityContext, containers, automountServiceAccountToken } =
      manifest<Deployment>('Deployment').spec!.template.spec!;
    expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    expect(automountServiceAccountToken).toBe(false);
    expect(containers[0]!.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });

  it('has parts that name each other: labels, ports, the target of scaling', () => {
    const { spec } = manifest<Deployment>('Deployment');
    const { labels } = spec!.template.metadata!;
    const selectors = [
      spec!.selector.matchLabels,
      manifest<Service>('Service').spec!.selector,
      manifest<Service>('Service', 'headgate-admin').spec!.selector,
      manifest<PodDisruptionBudget>('PodDisruptionBudget').spec!.selector!.matchLabels,
      manifest<NetworkPolicy>('NetworkPolicy').spec!.podSelector.matchLabels,
    ];
    for (const selector of selectors) expect(labels).toMatchObject(selector!);
    const ports = spec!.template.spec!.containers[0]!.ports!.map(({ name }) => name);
    const named = manifest<NetworkPolicy>('NetworkPolicy').spec!.ingress!.flatMap(({ ports: open }) =>
      open!.map(({ port }) => port),
    );
    expect(named).toEqual(ports);
    expect(manifest<HorizontalPodAutoscaler>('HorizontalPodAutoscaler').spec!.scaleTargetRef.name).toBe('headgate');
  });

  it('scales servers by a figure that /demand has', () => {
    const { spec } = manifest<{ spec: { maxReplicaCount: number; triggers: { metadata: Record<string, string> }[] } }>(
      'ScaledObject',
      'vllm',
    );
    const { url, valueLocation } = spec.triggers[0]!.metadata;
    expect(new URL(url!)).toMatchObject({ pathname: '/demand', port: '9090' });
    expect(new URL(url!).hostname.split('.')[0]).toBe(manifest<Service>('Service', 'headgate-admin').metadata!.name);
    expect(read('src/adapters/http/demand-handler.ts')).toMatch(new RegExp(`\\b${valueLocation}: number`));
    const { upstreams } = loadGatewayConfig(manifest<ConfigMap>('ConfigMap').data!['gateway.yaml']!, { env: secrets });
    expect(upstreams).toHaveLength(spec.maxReplicaCount);
  });
});

describe('docs/deployment.md', () => {
  it('prints a part of a manifest that the schemas of Kubernetes accept', () => {
    const [, text = ''] = /```yaml\n(spec:.*?)```/s.exec(read('docs/deployment.md'))!;
    const deployment = structuredClone(manifest<Deployment>('Deployment'));
    deployment.spec!.template = { ...deployment.spec!.template, ...parse(text) };
    expect(problemsOf([deployment as never])).toEqual([]);
    expect(deployment.spec!.template.spec!.terminationGracePeriodSeconds).toBe(60);
  });
});

describe('deploy/systemd/headgate.service', () => {
  const unit = read('deploy/systemd/headgate.service');

  it('starts the command itself, reloads by SIGHUP, and waits for the drain', () => {
    expect(unit).toMatch(/^ExecStart=\/opt\/headgate\/node_modules\/\.bin\/headgate gateway --config /m);
    expect(unit).toMatch(/^ExecReload=\/bin\/kill -HUP \$MAINPID$/m);
    const { drain } = loadGatewayConfig({ listen: { port: 0 }, upstreams: [{ id: 'a', url: 'http://a' }] });
    const [, seconds] = /^TimeoutStopSec=(\d+)$/m.exec(unit)!;
    expect(Number(seconds) * 1_000).toBeGreaterThan(drain.delay + drain.waiting + drain.streams);
  });

  it('has lines of three forms: a section, a comment, a setting', () => {
    const others = unit.split('\n').filter((line) => !/^(?:|#.*|\[(?:Unit|Service|Install)\]|[A-Z]\w+=.*)$/.test(line));
    expect(others).toEqual([]);
  });
});
