/** The gate and the figures beside it, and the notice of shadow mode. */
import type { InspectorFrame } from '../../frame.js';
import { byId, mark, notice, set, tell, write } from './dom.js';
import { bytes, count, gateWords, rate, time } from './figures.js';

export function showGate(frame: InspectorFrame): void {
  const isIdle = frame.waiting === 0;
  const isShut = frame.gate !== 'open';
  const gate = byId('gate');
  mark(gate, 'shut', isShut);
  mark(gate, 'open', !isShut);
  write(byId('verdict'), frame.state !== 'open' ? frame.state : isShut ? (isIdle ? 'full' : 'closed') : 'open');
  const held = isShut ? `holds back ${count(frame.waiting)}: ${gateWords[frame.gate]}` : 'lets go';
  write(byId('held'), isIdle ? 'nothing waits' : held);
  write(byId('saturation'), frame.saturation.toFixed(2));
  const gauge = byId('gauge');
  set(gauge, '--share', Math.min(frame.saturation, 1).toFixed(3));
  tell(gauge, 'aria-valuenow', Math.min(frame.saturation, 1));
  tell(gauge, 'aria-valuetext', `${frame.saturation.toFixed(2)}, full at 1`);
  write(byId('waiting'), count(frame.waiting));
  write(byId('in-flight'), count(frame.inFlight));
  write(byId('drain-label'), frame.isGrowing ? 'the queue is' : 'drains in');
  write(byId('drain'), isIdle ? '–' : frame.isGrowing ? 'growing' : time(frame.timeToDrainMs));
  write(byId('arriving'), rate(frame.arrivedPerSecond));
  write(byId('dispatching'), rate(frame.dispatchedPerSecond));
  write(byId('bytes'), bytes(frame.waitingBytes));
  const { oldestLease } = frame;
  write(byId('lease'), oldestLease === null ? 'in flight' : `in flight, oldest ${time(oldestLease.heldMs)}`);
  tell(byId('lease'), 'title', oldestLease === null ? '' : `the oldest lease is of ${oldestLease.flow}`);
  mark(byId('lease'), 'overdue', oldestLease?.isOverdue === true);
}

/** Says that the page shows what would happen, and that no request is affected. */
export function showShadow({ shadow }: InspectorFrame): void {
  notice(byId('shadow'), shadow === null ? '' : `${shadowed} ${shadowText(shadow)}`);
}

const shadowed = 'Shadow mode: nothing is held or dropped, and this page shows what would be.';

function shadowText(shadow: NonNullable<InspectorFrame['shadow']>): string {
  const { passed, wouldHaveWaited, wouldHaveBeenDropped, wouldHaveBeenEvicted } = shadow;
  const evicted =
    wouldHaveBeenEvicted === 0 ? '' : `, ${count(wouldHaveBeenEvicted)} would have been evicted while they ran`;
  const dropped = `${count(wouldHaveBeenDropped)} would have been dropped`;
  return `Of ${count(passed)} requests ${count(wouldHaveWaited)} would have waited, ${dropped}${evicted}.`;
}
