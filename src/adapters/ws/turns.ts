/**
 * Which turns a socket has, and which frames may go on. This knows no socket, no clock and no gate.
 *
 *     response.create ─► held ──► waiting ─► running ─► over      an event of the server ends it
 *                        its lane    │          └─► ending ─► over   the client was told, the server is being stopped
 *                        is busy     └─► over   dropped, cancelled, or the client left
 *
 * Invariant: the client's frames of a lane go on in the order in which they came. In Realtime all frames are one lane,
 * because each may change what a response is about; in Responses only `response.create` is of a lane, and the next one
 * waits for the end of the last, as at the server. What the server begins by itself (voice activity, steering) goes to
 * the client at once, and takes its seat when there is one; if it is dropped, it is stopped.
 */
import type { RequestFlow } from '../http/request-flow.js';
import { type Frame, Turn, type TurnOwner, weightOf } from './turn.js';
import { fault, isCancel, isEnd, type SocketDialect, type TurnEvent, turnEvent, turnText } from './turn-events.js';

/** What a host does for the turns of a socket. */
export interface TurnHost {
  /** The host does the work: no server is to be told of a cancel. */
  readonly isServed: boolean;
  /** Asks for a seat, and calls `grant`, `reject` or nothing. */
  ask(turn: Turn): void;
  /** A frame that may go on; with `turn`: its first one, which has its seat. */
  forward(frame: Frame, turn?: Turn): void;
  /** A frame of the server is of this turn. True: the client does not get it, and the turn goes on elsewhere. */
  heard?(turn: Turn, event: TurnEvent, text: string): boolean;
}

export abstract class Turns implements TurnOwner {
  readonly dialect: SocketDialect;
  /** Bytes of the client that wait behind its own turns. */
  protected heldBytes = 0;
  protected readonly host: TurnHost;
  /** In the order of their events. */
  private readonly turns = new Set<Turn>();
  private held: (readonly [Frame, TurnEvent | undefined])[] = [];
  private isMoving = false;

  constructor(dialect: SocketDialect, host: TurnHost) {
    this.dialect = dialect;
    this.host = host;
  }

  /** Frames may go on: there is somebody who takes them. */
  protected abstract get isReady(): boolean;
  protected abstract toClient(data: Buffer | string, isBinary?: boolean): void;
  /** The work of a turn is to end. True when it has, false when the server will tell, or be broken off. */
  protected abstract stop(turn: Turn): boolean;
  /** How many frames wait has changed, or a turn is over. */
  protected abstract moved(): void;
  abstract sign(text: string): void;

  /** Turns that wait or run. */
  get count(): number {
    return this.turns.size;
  }

  protected fromClient(frame: Frame): void {
    const event = frame.isBinary ? undefined : turnEvent(frame.data.toString());
    if (event !== undefined && isCancel(event)) {
      if (!this.cancel(event)) this.host.forward(frame);
    } else if (this.isBlocked(event)) {
      this.held.push([frame, event]);
      this.heldBytes += weightOf(frame);
      this.moved();
    } else this.take(frame, event);
  }

  /** `of`: the turn, if it is known. */
  fromServer(frame: Frame, of?: Turn): void {
    const text = frame.isBinary ? '' : frame.data.toString();
    const event = turnEvent(text);
    const turn = event && (of ?? this.turnOf(event));
    if (turn === undefined || event === undefined) return void this.toClient(frame.data, frame.isBinary);
    if (event.type === 'response.created') turn.responseId ??= event.responseId;
    if (this.host.heard?.(turn, event, text) === true) return;
    if (turn.phase !== 'ending') this.toClient(frame.data, frame.isBinary);
    if (event.type === 'error' || isEnd(event)) this.over(turn, turn.phase !== 'ending');
  }

  /** It has its seat. `late`: its time is over. */
  grant(turn: Turn, flow: RequestFlow | undefined, mostMs: number, late?: () => void): void {
    if (turn.phase !== 'waiting') return;
    turn.granted = flow;
    turn.phase = 'running';
    turn.after(mostMs, late ?? (() => this.fail(turn, tooLate)));
    if (this.isReady) this.opened();
  }

  /** The server can be written to. */
  protected opened(): void {
    for (const turn of this.turns) {
      const { frame, phase } = turn;
      if (phase !== 'running' || frame === undefined) continue;
      turn.frame = undefined;
      this.host.forward(frame, turn);
    }
    this.move();
  }

  /** It goes to another server, with the client's event: whoever gave its seat asks for another one. */
  again(turn: Turn, data: Buffer | undefined): void {
    if (turn.phase !== 'running') return;
    turn.phase = 'waiting';
    turn.frame = data && { data, isBinary: false };
    turn.after(Infinity, () => {});
  }

  fail(turn: Turn, error: object): void {
    if (turn.isAnswered) return;
    const isAtServer = turn.phase === 'running' || !turn.isOwn;
    turn.phase = 'ending';
    this.toClient(turnText(this.dialect, turn, 'failed', error));
    if (!isAtServer || this.stop(turn)) this.over(turn, false);
  }

  /** It has ended: sent in whole, or not. */
  over(turn: Turn, isSent: boolean): void {
    if (!this.turns.delete(turn)) return;
    turn.phase = 'over';
    turn.end(isSent);
    this.move();
    this.moved();
  }

  /** One of the sockets is gone: nothing can go on. `error` tells the client why, in Realtime of its session too. */
  protected leave(error?: object): void {
    this.held = [];
    this.heldBytes = 0;
    for (const turn of this.turns) {
      if (error !== undefined) this.fail(turn, error);
      this.over(turn, false);
    }
    if (error !== undefined && this.dialect === 'realtime')
      this.toClient(turnText('realtime', { id: '', responseId: undefined, req: session }, 'failed', error));
  }

  private take(frame: Frame, event: TurnEvent | undefined): void {
    if (event?.type === 'response.create') this.begin(event, frame);
    else this.host.forward(frame);
  }

  /** Without a frame: the server has begun it. */
  private begin(event: TurnEvent, frame?: Frame): Turn {
    const turn = new Turn(this, event, frame);
    if (frame === undefined) turn.responseId = event.responseId;
    this.turns.add(turn);
    this.host.ask(turn);
    return turn;
  }

  /** False where the server is to hear of it. */
  private cancel({ lane, responseId }: TurnEvent): boolean {
    const isMeant = (turn: Turn): boolean =>
      responseId === undefined ? turn.req.lane === lane : turn.responseId === responseId || turn.id === responseId;
    const meant = [...this.turns].find(isMeant);
    const isHere = meant?.phase === 'waiting' ? meant.isOwn : this.host.isServed || meant?.frame !== undefined;
    if (meant === undefined || !isHere) return false;
    this.toClient(turnText(this.dialect, meant, 'cancelled'));
    this.over(meant, false);
    return true;
  }

  private isBlocked(event: TurnEvent | undefined): boolean {
    const isRealtime = this.dialect === 'realtime';
    if (!this.isReady) return true;
    if (!isRealtime && event?.type !== 'response.create') return false;
    return [...this.turns].some(({ isOwn, phase, req }) =>
      isRealtime ? isOwn && phase === 'waiting' : req.lane === event?.lane,
    );
  }

  /** Frames that nothing stands before any more. */
  private move(): void {
    if (this.isMoving) return;
    this.isMoving = true;
    for (let at = 0; at >= 0; ) {
      at = this.held.findIndex(([, event]) => !this.isBlocked(event));
      const [next] = at < 0 ? [] : this.held.splice(at, 1);
      if (next === undefined) break;
      this.heldBytes -= weightOf(next[0]);
      this.take(...next);
    }
    this.isMoving = false;
  }

  /** The turn that an event of the server is about. */
  private turnOf(event: TurnEvent): Turn | undefined {
    const { lane, responseId, type, eventId } = event;
    const atServer = [...this.turns].filter(({ phase, isOwn }) => phase !== 'waiting' || !isOwn);
    const named = atServer.find((turn) => turn.responseId === responseId);
    if (responseId !== undefined && named !== undefined) return named;
    const ofLane = atServer.filter((turn) => turn.req.lane === lane);
    if (type === 'error' && eventId !== undefined) return ofLane.find((turn) => turn.req.eventId === eventId);
    const unnamed = ofLane.find((turn) => turn.responseId === undefined);
    if (type === 'response.created' && unnamed === undefined) return this.begin(event);
    // In Realtime most errors end nothing: one that names no event is taken for that of a response that has not begun.
    return unnamed ?? (this.dialect === 'realtime' ? undefined : ofLane[0]);
  }
}

/** What an error is about that is not about a turn. */
const session = { lane: '', eventId: undefined };

const tooLate = fault(504, 'ERR_FLOW_TURN_TIMEOUT', 'The response took too long.');
