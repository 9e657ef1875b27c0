/** The difference between two configurations, in words for a log. Secrets are compared and never shown. */
import type { GatewayConfig } from './gateway-config.js';

type Tree = Readonly<Record<string, unknown>>;

/** One text for each change, such as `timeouts.idle: 60000 → 30000` or `admin.token: changed`; empty for none. */
export function changesBetween(before: GatewayConfig, after: GatewayConfig): string[] {
  const changes: string[] = [];
  compare('', describable(before), describable(after), changes);
  return changes;
}

/** The configuration holds plugins as made objects; only the settings that they were made from can be compared. */
function describable({ flow, detectors, constraints, warnings, flowFingerprint, ...sections }: GatewayConfig): Tree {
  return { ...sections, ...(flowFingerprint === '' ? {} : JSON.parse(flowFingerprint)) };
}

const secrets: ReadonlySet<string> = new Set(['key', 'token', 'apiKey', 'password', 'ca', 'cert']);

function compare(path: string, before: unknown, after: unknown, changes: string[]): void {
  // What reads a secret again says nothing of it.
  if (before === after || typeof after === 'function') return;
  if (isTree(before) && isTree(after)) {
    const [old, now] = [named(before), named(after)];
    for (const name of new Set([...Object.keys(old), ...Object.keys(now)])) {
      const at = Array.isArray(after) ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`;
      if (secrets.has(name)) changes.push(...(old[name] === now[name] ? [] : [`${at}: changed`]));
      else compare(at, old[name], now[name], changes);
    }
  } else if (before === undefined) changes.push(isTree(after) ? `${path}: added` : `${path}: ${shown(after)}`);
  else if (after === undefined) changes.push(`${path}: removed`);
  else changes.push(`${path}: ${shown(before)} → ${shown(after)}`);
}

const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null;

/** Entries of lists go by their names, so that an inserted entry does not change all that follow. */
function named(tree: Tree): Tree {
  if (!Array.isArray(tree)) return tree;
  const entries: Record<string, unknown> = {};
  for (const entry of tree) {
    const { id, name, tenant, priority, type }: Record<string, unknown> = { ...Object(entry) };
    const given = String(id ?? name ?? tenant ?? priority ?? type ?? JSON.stringify(entry));
    let free = given;
    for (let count = 2; Object.hasOwn(entries, free); count++) free = `${given} ${count}`;
    entries[free] = entry;
  }
  return entries;
}

const shown = (value: unknown): string => (isTree(value) ? 'changed' : (JSON.stringify(value) ?? String(value)));
