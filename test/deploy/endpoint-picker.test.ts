/** The manifests of an endpoint picker, by the schemas of Kubernetes, the Gateway API and Istio; and the files in them. */
import { readFileSync } from 'node:fs';
import { Gateway } from '@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/Gateway';
import { HTTPRoute } from '@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/HTTPRoute';
import { DestinationRule } from '@kubernetes-models/istio/networking.istio.io/v1/DestinationRule';
import type { DeploymentSpec } from 'kubernetes-types/apps/v1.js';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { checkSource } from '../../src/gateway/cli/check-source.js';
import { loadEppConfig } from '../../src/gateway/index.js';
import { problemsOf } from './kubernetes-problems.js';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec?: Record<string, unknown>;
  readonly data?: Record<string, string>;
}

const manifests = parseAllDocuments(read('deploy/kubernetes/endpoint-picker.yaml')).map(
  (document) => document.toJS() as Manifest,
);
const found = (kind: string, name: string): Manifest | undefined =>
  manifests.find((each) => each.kind === kind && each.metadata.name === name);

const portNumber = z.number().int().min(1).max(65_535);
/** There is no package with this one. Source: its custom resource definition, version v1. */
const inferencePool = z.strictObject({
  apiVersion: z.literal('inference.networking.k8s.io/v1'),
  kind: z.literal('InferencePool'),
  metadata: z.strictObject({ name: z.string() }),
  spec: z.strictObject({
    selector: z.strictObject({ matchLabels: z.record(z.string(), z.string()) }),
    targetPorts: z
      .array(z.strictObject({ number: portNumber }))
      .min(1)
      .max(8),
    endpointPickerRef: z.strictObject({
      group: z.string().optional(),
      kind: z.string().optional(),
      name: z.string(),
      port: z.strictObject({ number: portNumber }),
      failureMode: z.enum(['FailOpen', 'FailClose']).optional(),
    }),
  }),
});

type Model = new (data: never) => { validate(): void };
const models: Readonly<Record<string, Model>> = { Gateway, HTTPRoute, DestinationRule };

describe('the manifests for the Gateway API', () => {
  it.each(manifests.map((manifest) => [manifest.kind, manifest.metadata.name, manifest] as const))(
    'are right: %s %s',
    (kind, _name, manifest) => {
      if (kind === 'InferencePool') inferencePool.parse(manifest);
      else if (models[kind] === undefined) expect(problemsOf([manifest])).toEqual([]);
      else new models[kind](manifest as never).validate();
    },
  );

  it('would be found wrong', () => {
    const [gateway] = manifests;
    const wrong = {
      ...gateway,
      spec: { ...gateway?.spec, listeners: [{ name: 'http', port: 'eighty', protocol: 'HTTP' }] },
    };
    expect(() => new Gateway(wrong as never).validate()).toThrow(/port must be integer/);
    const deployment = structuredClone(found('Deployment', 'headgate-epp')) as Manifest;
    Object.assign(deployment.spec ?? {}, { replica: 2 });
    expect(problemsOf([deployment])).toEqual([expect.stringContaining('replica')]);
  });

  it('name each other', () => {
    const { spec } = inferencePool.parse(found('InferencePool', 'vllm'));
    const { name, port } = spec.endpointPickerRef;
    const service = found('Service', name)?.spec as { ports: { port: number }[]; selector: object };
    expect(service.ports.map((each) => each.port)).toContain(port.number);
    const deployment = found('Deployment', name)?.spec as { template: { metadata: { labels: object } } };
    expect(deployment.template.metadata.labels).toMatchObject(service.selector);
    const route = JSON.stringify(found('HTTPRoute', 'models'));
    expect(route).toContain('"group":"inference.networking.k8s.io","kind":"InferencePool","name":"vllm"');
  });

  it('have a file that the picker takes, with the ports that the others say', () => {
    const text = found('ConfigMap', 'headgate-epp')?.data?.['epp.yaml'] ?? '';
    const { endpoints, settings, warnings, options } = loadEppConfig(text);
    expect(warnings).toEqual([]);
    expect(options.saturationDetector).toMatchObject({ type: 'utilization-detector' });
    expect(endpoints).toMatchObject({ dns: 'vllm.default.svc.cluster.local', port: 8000 });
    expect(settings).toMatchObject({ port: 9002, healthPort: 9003, metricsPort: 9090, trust: true });
    const { template } = (found('Deployment', 'headgate-epp') as unknown as { spec: DeploymentSpec }).spec;
    const { terminationGracePeriodSeconds = 0, containers } = template.spec ?? { containers: [] };
    expect(terminationGracePeriodSeconds * 1_000).toBeGreaterThan(settings.drain + settings.drainStreams);
    expect(containers[0]?.args?.slice(0, 3)).toEqual(['epp', '--config', '/etc/headgate/epp.yaml']);
  });
});

it('the file of the example is taken without a warning', () => {
  const { warnings, scorers, maxEndpoints, objectives } = loadEppConfig(read('examples/epp/epp.yaml'));
  expect(warnings).toEqual([]);
  expect(scorers).toHaveLength(2);
  expect(maxEndpoints).toBe(2);
  expect(objectives.get('batch')).toBe(-10);
});

it('the files of the example and of the manifest are what the check would advise', () => {
  const ofManifest = found('ConfigMap', 'headgate-epp')?.data?.['epp.yaml'] ?? '';
  for (const text of [read('examples/epp/epp.yaml'), ofManifest])
    expect(checkSource(text)).toMatchObject({ faults: [], warnings: [] });
});
