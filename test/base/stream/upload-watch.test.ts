import { describe, expect, it } from 'vitest';
import { type UploadState, UploadWatch } from '../../../src/base/stream/upload-watch.js';
import { ManualClock } from '../../../src/testing/index.js';

function watch(limits: { idleMs?: number; minBytesPerSecond?: number } = {}) {
  const clock = new ManualClock();
  const uploads = new UploadWatch({ idleMs: 10_000, minBytesPerSecond: 1000, ...limits }, clock);
  const ended: string[] = [];
  const states = new Map<string, UploadState>();
  return {
    clock,
    ended,
    /** Its bytes so far. */
    sends: (name: string, bytes: number) => void states.set(name, { type: 'coming', bytes }),
    set: (name: string, state: UploadState) => void states.set(name, state),
    add: (name: string) =>
      uploads.add(
        () => states.get(name) ?? { type: 'coming', bytes: 0 },
        () => ended.push(name),
      ),
    /** So many seconds, in steps in which the timer finds its time. */
    pass(seconds: number): void {
      for (let ms = 0; ms < seconds * 1000; ms += 250) clock.advance(250);
    },
  };
}

describe('an upload', () => {
  it('may begin, and others may be over, while one is ended: there is one timer, and none at the end', () => {
    const clock = new ManualClock();
    const uploads = new UploadWatch({ idleMs: 1000, minBytesPerSecond: 1 }, clock);
    const coming = (): UploadState => ({ type: 'coming', bytes: 0 });
    const ended: string[] = [];
    const stops: (() => void)[] = [];
    const other = uploads.add(coming, () => ended.push('other'));
    other();
    uploads.add(coming, () => {
      ended.push('first');
      stops[0]?.();
      stops.push(uploads.add(coming, () => ended.push('late')));
    });
    stops.push(uploads.add(coming, () => ended.push('taken along')));
    for (let ms = 0; ms < 1500 && ended.length === 0; ms += 250) clock.advance(250);
    expect([ended, clock.pendingTimers]).toEqual([['first'], 1]);
    stops[1]?.();
    stops[1]?.();
    expect(clock.pendingTimers).toBe(0);
  });

  it('that is silent for as long as it may is ended, and not before', () => {
    const { add, ended, pass } = watch();
    add('idle');
    pass(10);
    expect(ended).toEqual([]);
    pass(2);
    expect(ended).toEqual(['idle']);
    pass(60);
    expect(ended).toEqual(['idle']);
  });

  it('that sends now and then is not silent, and is ended for its rate', () => {
    const { add, ended, pass, sends } = watch();
    add('trickle');
    for (let second = 0; second < 10; second++) {
      sends('trickle', second + 1);
      pass(1);
    }
    expect(ended).toEqual([]);
    sends('trickle', 20);
    pass(3);
    expect(ended).toEqual(['trickle']);
  });

  it('that keeps to the rate may take as long as it likes', () => {
    const { add, ended, pass, sends } = watch();
    add('slow');
    for (let second = 0; second < 120; second++) {
      sends('slow', (second + 1) * 1500);
      pass(1);
    }
    expect(ended).toEqual([]);
  });

  it('is not blamed for what the host has not read', () => {
    const { add, ended, pass, set } = watch();
    add('unread');
    pass(9);
    set('unread', { type: 'unread' });
    pass(60);
    expect(ended).toEqual([]);
    set('unread', { type: 'coming', bytes: 50_000 });
    pass(8);
    expect(ended).toEqual([]);
  });

  it('is not blamed for an event loop that stood still', () => {
    let nowMs = 0;
    let fire = (): void => {};
    const late = {
      now: () => nowMs,
      setTimeout: (callback: () => void): void => {
        fire = callback;
      },
      clearTimeout() {},
    };
    const ended: string[] = [];
    const uploads = new UploadWatch({ idleMs: 10_000, minBytesPerSecond: 1000 }, late);
    uploads.add(
      () => ({ type: 'coming', bytes: 0 }),
      () => ended.push('idle'),
    );
    nowMs = 60_000;
    fire();
    expect(ended).toEqual([]);
  });

  it('that has arrived, or is no longer watched, costs no timer', () => {
    const { add, clock, pass, set } = watch();
    const stop = add('first');
    add('second');
    expect(clock.pendingTimers).toBe(1);
    stop();
    expect(clock.pendingTimers).toBe(1);
    set('second', { type: 'over' });
    pass(2);
    expect(clock.pendingTimers).toBe(0);
  });

  it('is watched again after a time without any', () => {
    const { add, clock, ended, pass } = watch();
    add('first')();
    clock.advance(60_000);
    add('second');
    pass(9);
    expect(ended).toEqual([]);
    pass(3);
    expect(ended).toEqual(['second']);
  });
});
