import { type Meter, type Tracer, trace } from '@opentelemetry/api';
import { register as globalRegister, Registry } from 'prom-client';
import { describe, expectTypeOf, it } from 'vitest';
import type { FlowController, FlowRequest } from '../../src/index.js';
import { openTelemetryMetrics, traceFlowControl } from '../../src/observability/opentelemetry/index.js';
import { prometheusMetrics } from '../../src/observability/prometheus/index.js';

interface ModelRequest extends FlowRequest {
  readonly model: string;
}

declare const flow: FlowController<ModelRequest>;
declare const meter: Meter;
declare const tracer: Tracer;

describe('exporters', () => {
  it('take prom-client’s registries, and know the controller’s requests', () => {
    prometheusMetrics(flow, { register: globalRegister });
    prometheusMetrics(flow, {
      register: new Registry(),
      modelName: (request) => {
        expectTypeOf(request).toEqualTypeOf<ModelRequest>();
        return request.model;
      },
    });
    // @ts-expect-error: no registry
    prometheusMetrics(flow, { prefix: 'x_' });
    // @ts-expect-error: a misspelt option
    prometheusMetrics(flow, { register: globalRegister, lables: {} });
  });

  it('take what the OpenTelemetry API gives', () => {
    openTelemetryMetrics(flow, { meter });
    traceFlowControl(flow, { tracer: trace.getTracer('gateway') });
    traceFlowControl(flow, {
      tracer,
      contextOf: (request) => {
        expectTypeOf(request).toEqualTypeOf<ModelRequest>();
        throw new Error(request.model);
      },
    });
  });
});
