/** Time to first token of each tenant: the percentiles of late, and the course over the whole run. */
import type { SimRequest } from 'headgate/simulator';

/** Percentiles are of requests whose first token came so long ago at most, ms. */
const recentMs = 10_000;
/** Length of a step of the course, ms. */
export const stepMs = 1_000;

interface Tenant {
  readonly atMs: number[];
  readonly ttftMs: number[];
  /** Greatest of each step; undefined where none came. */
  readonly course: (number | undefined)[];
}

export class FirstTokens {
  private readonly tenants: readonly Tenant[];
  private awaited: { request: SimRequest; tenant: number }[] = [];

  constructor(tenants: number) {
    this.tenants = Array.from({ length: tenants }, () => ({ atMs: [], ttftMs: [], course: [] }));
  }

  await(request: SimRequest, tenant: number): void {
    this.awaited.push({ request, tenant });
  }

  /** Takes note of first tokens that have come. O(requests that have none yet). */
  look(nowMs: number): void {
    let kept = 0;
    for (const each of this.awaited) {
      const { firstTokenAtMs, arrivedAtMs, hasEnded } = each.request;
      if (Number.isNaN(firstTokenAtMs)) {
        if (!hasEnded) this.awaited[kept++] = each;
      } else this.note(this.tenants[each.tenant] as Tenant, firstTokenAtMs, firstTokenAtMs - arrivedAtMs);
    }
    this.awaited.length = kept;
    for (const { course } of this.tenants) if (course.length < Math.ceil(nowMs / stepMs)) course.push(undefined);
  }

  courseOf(tenant: number): readonly (number | undefined)[] {
    return this.tenants[tenant]?.course ?? [];
  }

  /** Of the last ten simulated seconds, ms; undefined when nothing came. */
  recent(tenant: number, nowMs: number): { p50Ms: number; p99Ms: number; perSecond: number } | undefined {
    const { atMs, ttftMs } = this.tenants[tenant] as Tenant;
    const first = atMs.findIndex((at) => at > nowMs - recentMs);
    if (first < 0) return undefined;
    const sorted = ttftMs.slice(first).sort((a, b) => a - b);
    const at = (share: number): number =>
      sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] as number;
    return {
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      perSecond: (sorted.length * 1000) / Math.min(recentMs, Math.max(nowMs, 1)),
    };
  }

  private note({ atMs, ttftMs, course }: Tenant, firstTokenAtMs: number, tookMs: number): void {
    atMs.push(firstTokenAtMs);
    ttftMs.push(tookMs);
    const step = Math.floor(firstTokenAtMs / stepMs);
    while (course.length <= step) course.push(undefined);
    course[step] = Math.max(course[step] ?? 0, tookMs);
  }
}
