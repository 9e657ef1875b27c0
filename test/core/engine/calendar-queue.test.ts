import { describe, expect, it } from 'vitest';
import { CalendarQueue } from '../../../src/core/engine/expiry.js';
import { QueueItem } from '../../../src/core/engine/queue-item.js';
import { Random } from '../../property/random.js';

let sequence = 0;

function waitUntil(deadlineMs: number): QueueItem {
  const item = new QueueItem({ byteSize: 0 }, undefined, 'a', 0, 0, 0, sequence++, 0, deadlineMs);
  item.settle = () => {};
  return item;
}

function makeCalendar(): { calendar: CalendarQueue; add(deadlineMs: number): QueueItem; leave(item: QueueItem): void } {
  const calendar = new CalendarQueue((item) => item.ttlMs);
  return {
    calendar,
    add(deadlineMs) {
      const item = waitUntil(deadlineMs);
      calendar.add(item, deadlineMs);
      return item;
    },
    leave(item) {
      item.settle = undefined;
      item.deadlines?.remove(item);
    },
  };
}

describe('a calendar', () => {
  it.each([
    ['within a page', 200],
    ['over a few buckets', 3000],
    ['over hours', 1e8],
  ])('tells the first deadline, whatever comes and goes, with deadlines %s', (_, spanMs) => {
    const random = new Random(spanMs);
    const { calendar, add, leave } = makeCalendar();
    const waiting = new Set<QueueItem>();
    let nowMs = 0;
    for (let step = 0; step < 4000; step++) {
      if (random.chance(0.55)) waiting.add(add(nowMs + random.int(spanMs) + random.int(4) / 4));
      else {
        const leaving = [...waiting][random.int(waiting.size)];
        if (leaving !== undefined) leave(leaving);
        if (leaving !== undefined) waiting.delete(leaving);
      }
      if (!random.chance(0.3)) continue;
      const expected = [...waiting].sort((a, b) => a.ttlMs - b.ttlMs || a.sequence - b.sequence)[0];
      expect(calendar.first()).toBe(expected);
      nowMs = expected?.ttlMs ?? nowMs;
    }
  });

  it('takes a deadline that is earlier than one it told', () => {
    const { calendar, add } = makeCalendar();
    add(5000);
    expect(calendar.first()?.ttlMs).toBe(5000);
    add(5001);
    add(20);
    add(5000);
    expect(calendar.first()?.ttlMs).toBe(20);
  });

  it('refers to no more than as many that left as there are that wait, and a few', () => {
    const { calendar, add, leave } = makeCalendar();
    const items = Array.from({ length: 10_000 }, (_, i) => add(1000 + (i % 1000)));
    const few = 5 * 33;
    // Those behind the first of their bucket: none of them surfaces.
    for (const item of items.slice(1000)) leave(item);
    expect(calendar.length).toBeLessThanOrEqual(2 * 1000 + few);
    for (const item of items.slice(0, 1000).reverse()) leave(item);
    expect(calendar.length).toBeLessThanOrEqual(few);
  });

  it('tells when it keeps more buckets than a few', () => {
    const { calendar, add, leave } = makeCalendar();
    for (let i = 0; i < 16; i++) leave(add(i * 1000));
    expect(calendar.hasGrown).toBe(false);
    leave(add(16_000));
    expect(calendar.hasGrown).toBe(true);
    expect(calendar.first()).toBeUndefined();
    expect(calendar.hasGrown).toBe(false);
  });
});
