/** Frames of sockets: whatever bytes come from either side, a seat is asked for by what a server would take for a turn. */
import type { Frame } from '../src/adapters/ws/turn.js';
import { turnEvent } from '../src/adapters/ws/turn-events.js';
import { Turns } from '../src/adapters/ws/turns.js';
import { parseJson } from '../src/base/stream/content-pieces.js';

class FuzzedTurns extends Turns {
  protected override get isReady(): boolean {
    return true;
  }
  protected override toClient(): void {}
  protected override stop(): boolean {
    return true;
  }
  protected override moved(): void {}
  override sign(): void {}
  override fromClient(frame: Frame): void {
    super.fromClient(frame);
  }
  /** What is left once both sockets are gone. */
  left(): number {
    this.leave();
    return this.count + this.heldBytes;
  }
}

export function fuzz(input: Buffer): void {
  const isRealtime = ((input[0] ?? 0) & 1) === 1;
  let asked = 0;
  let forwarded = 0;
  const turns = new FuzzedTurns(isRealtime ? 'realtime' : 'responses', {
    isServed: false,
    forward: () => void forwarded++,
    ask: () => void asked++,
  });
  const frames = input.subarray(1).toString().split('\n');
  for (const [index, text] of frames.entries()) {
    const before = [asked, forwarded];
    const data = Buffer.from(text);
    if (index % 3 === 2) {
      turns.fromServer({ data, isBinary: false });
      continue;
    }
    turns.fromClient({ data, isBinary: false });
    const isTurn = Object(parseJson(text)).type === 'response.create';
    if (isTurn && forwarded !== before[1] && asked === before[0]) throw new Error(`a turn without a seat: ${text}`);
    const event = turnEvent(text);
    if (isTurn !== (event?.type === 'response.create')) throw new Error(`read as ${event?.type}: ${text}`);
  }
  if (turns.left() !== 0) throw new Error('something is left');
}
