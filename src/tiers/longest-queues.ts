/**
 * Which flow of a band has most waiting for its weight, in requests and in bytes; and the newest request of a flow. A
 * band keeps one only where a full queue drops by fair share.
 *
 *     flow ── place in the heap by requests ┐
 *          └─ place in the heap by bytes    ┴ most first; among equals, the flow that began to wait last
 *
 * Invariant: a flow stands in both heaps exactly while something of it waits.
 */
import { FifoQueue } from '../base/queues/fifo-queue.js';
import type { ItemQueue, Queued } from '../base/queues/item-queue.js';

/** The unit of a limit. */
export type Resource = 'requests' | 'bytes';

/** The part of a flow that is compared. */
export interface QueueLoad {
  readonly waiting: number;
  readonly waitingBytes: number;
  readonly weight: number;
}

/** Waiting requests or bytes of the flow, divided by its weight. */
export function loadPerWeight(flow: QueueLoad, resource: Resource): number {
  return loadOf(flow, resource) / flow.weight;
}

export function loadOf({ waiting, waitingBytes }: QueueLoad, resource: Resource): number {
  return resource === 'bytes' ? waitingBytes : waiting;
}

interface Member<F extends QueueLoad, T extends Queued> {
  readonly flow: F;
  /** Later ones have higher numbers. */
  readonly number: number;
  /** Undefined where the flow's own queue is in arrival order. */
  readonly arrivals: FifoQueue<T> | undefined;
  readonly place: Record<Resource, number>;
}

/** A binary heap that knows the place of each member. Every change O(log flows). */
class MemberHeap<F extends QueueLoad, T extends Queued> {
  private readonly members: Member<F, T>[] = [];
  private readonly resource: Resource;

  constructor(resource: Resource) {
    this.resource = resource;
  }

  get first(): Member<F, T> | undefined {
    return this.members[0];
  }

  push(member: Member<F, T>): void {
    this.rise(member, this.members.length);
  }

  /** Moves a member whose waiting requests changed. */
  changed(member: Member<F, T>): void {
    this.rise(member, member.place[this.resource]);
    this.sink(member, member.place[this.resource]);
  }

  remove(member: Member<F, T>): void {
    const place = member.place[this.resource];
    const last = this.members.pop() as Member<F, T>;
    if (last === member) return;
    this.put(last, place);
    this.changed(last);
  }

  private rise(member: Member<F, T>, from: number): void {
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const above = this.members[parent] as Member<F, T>;
      if (!this.isMore(member, above)) break;
      this.put(above, place);
      place = parent;
    }
    this.put(member, place);
  }

  private sink(member: Member<F, T>, from: number): void {
    const { members } = this;
    let place = from;
    for (let child = 2 * place + 1; child < members.length; child = 2 * place + 1) {
      const right = members[child + 1];
      const larger = right !== undefined && this.isMore(right, members[child] as Member<F, T>) ? child + 1 : child;
      const below = members[larger] as Member<F, T>;
      if (!this.isMore(below, member)) break;
      this.put(below, place);
      place = larger;
    }
    this.put(member, place);
  }

  private isMore(a: Member<F, T>, b: Member<F, T>): boolean {
    const difference = loadPerWeight(a.flow, this.resource) - loadPerWeight(b.flow, this.resource);
    return difference === 0 ? a.number > b.number : difference > 0;
  }

  private put(member: Member<F, T>, place: number): void {
    this.members[place] = member;
    member.place[this.resource] = place;
  }
}

export class LongestQueues<F extends QueueLoad, T extends Queued> {
  private readonly members = new Map<F, Member<F, T>>();
  private readonly heaps = { requests: new MemberHeap<F, T>('requests'), bytes: new MemberHeap<F, T>('bytes') };
  private readonly queueOf: ((flow: F) => ItemQueue<T> | undefined) | undefined;
  private numbers = 0;

  /** `queueOf` finds a flow's own queue where that is in arrival order; undefined where arrivals are kept here. */
  constructor(queueOf: ((flow: F) => ItemQueue<T> | undefined) | undefined) {
    this.queueOf = queueOf;
  }

  /** One more request of the flow waits; the flow's counts have it already. O(log flows). */
  added(item: T, flow: F): void {
    const member = this.members.get(flow) ?? this.join(flow);
    member.arrivals?.push(item);
    this.moved(member);
  }

  /** The weight of the flow is another. O(log flows). */
  weighed(flow: F): void {
    const member = this.members.get(flow);
    if (member !== undefined) this.moved(member);
  }

  /** A request of the flow waits no longer; the flow's counts are without it already. O(log flows). */
  left(flow: F): void {
    const member = this.members.get(flow);
    if (member === undefined) return;
    member.arrivals?.discard();
    if (flow.waiting > 0) return void this.moved(member);
    this.members.delete(flow);
    this.heaps.requests.remove(member);
    this.heaps.bytes.remove(member);
  }

  /** The flow with most waiting for its weight; undefined while nothing waits. O(1). */
  most(resource: Resource): F | undefined {
    return this.heaps[resource].first?.flow;
  }

  /** The waiting requests of the flow, the newest first. It costs only as much as the caller takes. */
  newestFirst(flow: F): Iterable<T> {
    return (this.members.get(flow)?.arrivals ?? this.queueOf?.(flow))?.newestFirst?.() ?? [];
  }

  private moved(member: Member<F, T>): void {
    this.heaps.requests.changed(member);
    this.heaps.bytes.changed(member);
  }

  private join(flow: F): Member<F, T> {
    const arrivals = this.queueOf === undefined ? new FifoQueue<T>() : undefined;
    const member: Member<F, T> = { flow, number: this.numbers++, arrivals, place: { requests: 0, bytes: 0 } };
    this.members.set(flow, member);
    this.heaps.requests.push(member);
    this.heaps.bytes.push(member);
    return member;
  }
}
