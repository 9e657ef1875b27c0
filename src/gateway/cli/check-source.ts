/** Checks a file: its faults, its warnings, and the settings in effect. */
import { loadConfig } from '../../config/index.js';
import { type ConfigIssue, EndpointPool, FlowConfigError, type PluginRegistry, resolveOptions } from '../../index.js';
import { loadEppConfig } from '../epp/epp-config.js';
import { type GatewayConfig, loadGatewayConfig } from '../index.js';
import { type Effective, effectiveFlow, effectiveGateway } from './effective-settings.js';
import { declaredIn, depthLints, flowLints, gatewayLints } from './lints.js';
import { effectiveTenants, tenantLints } from './tenants.js';

export interface CheckResult {
  readonly kind: 'gateway file' | 'EndpointPickerConfig' | 'unknown';
  /** The file cannot be used. */
  readonly faults: readonly ConfigIssue[];
  /** The file can be used, but is probably not what its author expects. */
  readonly warnings: readonly string[];
  /** The settings in effect, defaults included; empty for a file with faults. */
  readonly effective: readonly Effective[];
}

/** Documents with kinds are read as an EndpointPickerConfig, others as a gateway file with plugins of `registry`. */
export function checkSource(text: string, registry?: PluginRegistry): CheckResult {
  const isDocument = /^\uFEFF?kind:/m.test(text) && !/^\uFEFF?(listen|upstreams):/m.test(text);
  const kind = isDocument ? 'EndpointPickerConfig' : 'gateway file';
  try {
    return { kind, faults: [], ...(isDocument ? checkDocument(text, registry) : checkGateway(text, registry)) };
  } catch (error) {
    if (!(error instanceof FlowConfigError)) throw error;
    return { kind, faults: error.issues, warnings: [], effective: [] };
  }
}

type Findings = Pick<CheckResult, 'warnings' | 'effective'>;

function checkDocument(text: string, registry: PluginRegistry | undefined): Findings {
  const isServed = /^headgate:/m.test(text);
  const { options, warnings, objectives, enabled } = isServed
    ? { ...loadEppConfig(text, { registry }), enabled: true }
    : loadConfig(text, { registry });
  const resolved = resolve(options);
  const gate = enabled ? [] : ['the feature gate "flowControl" is off: a host that heeds it applies none of this'];
  const depth = depthLints(resolved, objectives, declaredIn(text), 5);
  return {
    warnings: [...warnings, ...gate, ...flowLints(resolved, objectives), ...depth],
    effective: effectiveFlow(resolved),
  };
}

function checkGateway(text: string, registry: PluginRegistry | undefined): Findings {
  const missing: string[] = [];
  const config: GatewayConfig = loadGatewayConfig(text, { registry, onMissing: (what) => missing.push(what) });
  const resolved = resolve(config.flow);
  const objectives = new Map(Object.entries(config.objectives));
  const declared = declaredIn(text);
  return {
    warnings: [
      ...config.warnings,
      ...missing,
      ...gatewayLints(config, resolved, declared),
      ...tenantLints(config, resolved, declared),
      ...flowLints(resolved, objectives),
      ...depthLints(resolved, objectives, declared, 1),
    ],
    effective: [...effectiveGateway(config), ...effectiveFlow(resolved), effectiveTenants(config, resolved, declared)],
  };
}

function resolve(options: GatewayConfig['flow']): ReturnType<typeof resolveOptions> {
  return resolveOptions({ ...options, pool: new EndpointPool() }, 'flowControl');
}
