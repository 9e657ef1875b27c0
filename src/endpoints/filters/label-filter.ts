/** Requests go to the endpoints whose label says that they serve them: a model, an adapter, a role. */
import { type Definition, define } from '../../base/policy-definition.js';
import { requestField, textIn } from '../../base/request-field.js';
import * as s from '../../base/schema/schema.js';
import type { EndpointFilter } from './endpoint-filter.js';

/** Parameters that a configuration file can hold. */
export interface LabelFilterParameters {
  /** The label's name. Its value may be a list: an endpoint with `a, b` serves both. */
  label: string;
  /** The request's field to compare; without text there it may go anywhere. @default the label's name */
  field?: string | undefined;
  /** In place of a field: every request goes to endpoints with one of these values. */
  validValues?: readonly string[] | undefined;
  /** Whether an endpoint without the label serves everything. @default false: nothing that the filter restricts */
  allowsNoLabel?: boolean | undefined;
}

export interface LabelFilterOptions<R = unknown> extends LabelFilterParameters {
  /** In place of a field: returns the text to compare. Undefined or empty: the request may go anywhere. */
  of?: ((request: R) => string | undefined) | undefined;
}

const shape = {
  label: s.text('the name of a label'),
  field: s.optional(s.text('the name of a field of the request')),
  validValues: s.optional(s.list(s.text())),
  allowsNoLabel: s.optional(s.flag(), false),
};

type Sources = Partial<Record<'field' | 'validValues' | 'of', unknown>>;

function comparesWithOneThing({ field, validValues, of }: Sources, report: s.Report): void {
  if (Array.isArray(validValues) && validValues.length === 0) report('at least one entry', ['validValues']);
  const given = [field, validValues, of].filter((source) => source !== undefined);
  if (given.length > 1) report('only one of "field", "validValues" and "of"');
}

function serves(label: string | undefined, values: readonly string[], allowsNoLabel: boolean): boolean {
  if (label === undefined) return allowsNoLabel;
  return label.split(',').some((entry) => values.includes(entry.trim()));
}

/**
 * Keeps the endpoints whose label equals what the request asks for, or contains it where the label is a list; text is
 * compared as it stands. With `validValues`, all requests are restricted alike. O(endpoints) for each value and change
 * of the pool. Source: llm-d-router, by-label filter, which knows `validValues` alone. @throws FlowConfigError
 * @example labelFilter({ label: 'model', of: ({ req }) => req.body.model })
 */
export function labelFilter<R = unknown>(options: LabelFilterOptions<R>): EndpointFilter<R> {
  const ofRequest = s.callable<(request: R) => unknown>('a function of the request');
  const schema = s.object({ ...shape, of: s.optional(ofRequest) }, comparesWithOneThing);
  const { label, field = label, of, validValues, allowsNoLabel } = s.parse(schema, options, 'labelFilter');
  return {
    type: 'label-filter',
    classOf({ request }) {
      if (validValues !== undefined) return 'valid';
      return textIn(of === undefined ? requestField(request, field) : of(request));
    },
    keep(endpoints, requestClass) {
      const values = validValues ?? [requestClass];
      return endpoints.filter(({ labels }) => serves(labels[label], values, allowsNoLabel));
    },
  };
}

const parameters = s.object(shape, comparesWithOneThing);
export const labelFilterPlugin: Definition<EndpointFilter> = define('label-filter', parameters, labelFilter);
