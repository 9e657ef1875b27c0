/** Results as arguments of functions that show or measure them. */
import { list } from '../../base/schema/containers.js';
import { value } from '../../base/schema/element.js';
import type { Schema } from '../../index.js';
import type { SimulationResult } from './result.js';

export const oneResult: Schema<SimulationResult> = value('a result of simulate', (given): given is SimulationResult => {
  const { all, classes, tenants, servers, series }: Record<string, unknown> = { ...Object(given) };
  return [all, classes, tenants, servers, series].every((part) => typeof part === 'object' && part !== null);
});

export const results: Schema<readonly SimulationResult[]> = list(oneResult);
