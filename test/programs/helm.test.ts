/** deploy/helm: what a real helm makes of the chart is what Kubernetes takes, and a file that the gateway starts with. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Deployment } from 'kubernetes-types/apps/v1.js';
import type { ConfigMap } from 'kubernetes-types/core/v1.js';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { loadGatewayConfig } from '../../src/gateway/index.js';
import { problemsOf } from '../deploy/kubernetes-problems.js';

const helm = process.env.HEADGATE_HELM;
const chart = fileURLToPath(new URL('../../deploy/helm/headgate', import.meta.url));
const ofThree = ['-f', `${chart}/values-3-replicas.yaml`];

function run(...args: string[]): { status: number | null; output: string; stdout: string } {
  const { status, stdout, stderr } = spawnSync(helm as string, args, { encoding: 'utf8' });
  return { status, stdout, output: `${stdout}${stderr}` };
}

function render(...args: string[]) {
  const { status, output, stdout } = run('template', 'prod', chart, ...args);
  expect(status, output).toBe(0);
  const documents = parseAllDocuments(stdout);
  expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
  const all = documents.flatMap(
    (document) => (document.toJS() ?? []) as { apiVersion: string; kind: string; metadata: { name: string } },
  );
  const find = <T>(kind: string): T => all.find((one) => one.kind === kind) as T;
  return { all, find };
}

/** As the gateway reads it, with the variables that the pod gets. */
function loaded({ find }: ReturnType<typeof render>) {
  const [container] = find<Deployment>('Deployment').spec!.template.spec!.containers;
  const env = Object.fromEntries((container!.env ?? []).map(({ name }) => [name, `redis://${name.toLowerCase()}`]));
  return loadGatewayConfig(find<ConfigMap>('ConfigMap').data!['gateway.yaml']!, { env });
}

describe.runIf(helm !== undefined)('deploy/helm', () => {
  it.each([
    ['one replica', []],
    ['three replicas with Redis', ofThree],
  ])('has nothing that helm warns of: %s', (_, args) => {
    expect(run('lint', '--strict', chart, ...args)).toMatchObject({ status: 0 });
  });

  it.each<[string, string[], string[]]>([
    ['one replica', [], ['ConfigMap', 'Deployment', 'Service', 'Service']],
    [
      'three replicas with Redis',
      ofThree,
      ['ConfigMap', 'Deployment', 'NetworkPolicy', 'PodDisruptionBudget', 'Service', 'Service'],
    ],
  ])('is what Kubernetes takes: %s', (_, args, kinds) => {
    const { all } = render(...args);
    expect(all.map(({ kind }) => kind).sort()).toEqual(kinds);
    expect(problemsOf(all)).toEqual([]);
    expect(new Set(all.map(({ metadata }) => metadata.name.replace(/-admin$/, '')))).toEqual(
      new Set(['prod-headgate']),
    );
  });

  it('writes a file that the gateway reads, with limits of its own for one replica', () => {
    const { sharedState, upstreams } = loaded(render());
    expect([sharedState, upstreams.map(({ id }) => id)]).toEqual([undefined, ['vllm-0']]);
  });

  it('writes a file that the gateway reads, with a shared limit for three', () => {
    const three = render(...ofThree);
    expect(three.find<ConfigMap>('ConfigMap').data!['gateway.yaml']).toContain('replicas: 3');
    const { sharedState } = loaded(three);
    expect(sharedState).toMatchObject({ limits: 'maxConcurrency', limit: 96 });
  });

  it('rolls out when the file changes, and only then', () => {
    const sum = (...args: string[]): string =>
      render(...args).find<Deployment>('Deployment').spec!.template.metadata!.annotations!['checksum/config']!;
    expect(sum()).toBe(sum('--set', 'podLabels.team=serving'));
    expect(sum()).not.toBe(sum('--set', 'gateway.drain.delay=7s'));
  });

  it('keeps labels, tolerations and a port of one’s own', () => {
    const set = ['podLabels.team=serving', 'tolerations[0].operator=Exists', 'gateway.listen.port=8181'];
    const { all, find } = render(...set.flatMap((each) => ['--set', each]));
    const { template } = find<Deployment>('Deployment').spec!;
    expect(template.metadata!.labels).toMatchObject({ team: 'serving', 'app.kubernetes.io/name': 'headgate' });
    expect(template.spec!.tolerations).toEqual([{ operator: 'Exists' }]);
    expect(template.spec!.containers[0]!.ports![0]).toEqual({ name: 'http', containerPort: 8181 });
    expect(problemsOf(all)).toEqual([]);
  });

  it.each([
    ['replica=3', 'replica'],
    ['replicas=0', 'replicas'],
    ['gateway.listen.host=127.0.0.1', 'listen'],
    ['gateway.sharedState.pool=chat', 'sharedState'],
    ['redis.maxConcurency=5', 'maxConcurency'],
    ['image.pullPolicy=Sometimes', 'pullPolicy'],
  ])('refuses %s, and names it', (set, named) => {
    const { status, output } = run('template', chart, '--set', set);
    expect(status).not.toBe(0);
    expect(output).toContain(named);
  });
});
