/**
 * How long will a first token take? The median of the latest of its kind: requests for one model whose prompts have as
 * many binary digits of tokens.
 *
 *     model ── octaves of tokens: 0 │ 1 │ 2–3 │ 4–7 │ …    each with its latest times, by age and in order
 */
import { BoundedLabel } from '../../base/bounded-label.js';
import { placesBefore } from '../../base/places-before.js';
import { put } from '../../base/put.js';
import { requestField, textIn } from '../../base/request-field.js';
import type { ItemView } from '../views.js';

/** Times of a kind that are remembered. */
const size = 100;
/** With fewer times there is no estimate. */
const fewest = 20;
/** Models that are told apart; all others are one. Clients may choose their names. */
const mostModels = 100;

/** Invariant: `sorted` has the members of `latest`, the least first. */
export class LatestMedian {
  private readonly latest: number[] = [];
  private readonly sorted: number[] = [];
  private place = 0;

  /** 0 until enough is known. */
  get value(): number {
    const { sorted } = this;
    return sorted.length < fewest ? 0 : (sorted[sorted.length >> 1] as number);
  }

  /** O(log 100), and a move of some of them. */
  add(durationMs: number): void {
    const oldest = this.latest[this.place];
    if (oldest !== undefined) this.sorted.splice(this.placeOf(oldest), 1);
    this.sorted.splice(this.placeOf(durationMs), 0, durationMs);
    this.latest[this.place] = durationMs;
    this.place = (this.place + 1) % size;
  }

  /** How many are less. */
  private placeOf(durationMs: number): number {
    return placesBefore(this.sorted.length, (place) => (this.sorted[place] as number) < durationMs);
  }
}

export class FirstTokenTimes {
  private readonly models = new BoundedLabel(mostModels);
  private readonly kinds = new Map<string, LatestMedian[]>();

  /** Half of the latest of its kind took longer, ms; 0 until enough is known. O(1). */
  expectedMs(item: ItemView): number {
    return this.kinds.get(this.modelOf(item))?.[octaveOf(item)]?.value ?? 0;
  }

  add(item: ItemView, afterMs: number): void {
    const model = this.modelOf(item);
    const octaves = this.kinds.get(model) ?? put(this.kinds, model, []);
    const octave = octaveOf(item);
    octaves[octave] ??= new LatestMedian();
    octaves[octave].add(afterMs);
  }

  private modelOf({ request }: ItemView): string {
    return this.models.of(textIn(requestField(request, 'model')) ?? '');
  }
}

/** Binary digits of its tokens. */
function octaveOf({ tokens }: ItemView): number {
  return tokens < 2 ** 31 ? 32 - Math.clz32(tokens) : 32;
}
