/** What one running request holds at one endpoint, from its dispatch to its end. */
import type { EndpointView } from '../../endpoints/endpoint.js';
import type { Hold } from './quota.js';
import type { QuotaGroup } from './quota-group.js';

/** A running request's holds on the quotas of one endpoint. */
export class Reservation {
  /** The status that its server answered; undefined before. */
  status: number | undefined = undefined;
  /** Its holds at the endpoint that it went to before. */
  previous: Reservation | undefined;
  readonly endpoint: EndpointView;
  readonly groups: readonly QuotaGroup[];
  readonly holds: readonly Hold[];
  readonly averageKey: string;
  readonly dispatchedAtMs: number;

  constructor(
    endpoint: EndpointView,
    groups: readonly QuotaGroup[],
    holds: readonly Hold[],
    key: string,
    nowMs: number,
  ) {
    this.endpoint = endpoint;
    this.groups = groups;
    this.holds = holds;
    this.averageKey = key;
    this.dispatchedAtMs = nowMs;
  }

  /** The group that an answer is about: the first that learns. For a refusal it is the first of all if none learns. */
  get learningGroup(): QuotaGroup | undefined {
    return this.groups.find(({ learns }) => learns) ?? this.groups[0];
  }
}
