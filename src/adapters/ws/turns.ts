/**
 * Which turns a socket has, and which frames may go on. It knows no socket, no clock and no gate.
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
import { type Frame, Turn, type TurnOwner } from './turn.js';
import {
  cancelledText,
  cancelsTurn,
  endsTurn,
  failureText,
  fault,
  type SocketDialect,
  type TurnEvent,
  turnEvent,
} from './turn-events.js';

/** What the turns of a socket do to it, and to flow control. */
export interface TurnPorts {
  /** The host does the work: no server is to be told of a cancel. */
  readonly isServed: boolean;
  toClient(data: Buffer | string, isBinary?: boolean): void;
  /** With `turn`: its first frame, which has its seat. */
  forward(frame: Frame, turn?: Turn): void;
  /** Asks for a seat, and calls `grant`, `reject` or nothing. */
  ask(turn: Turn): void;
  /** The work of a turn is to end. True when it has, false when the server will tell. */
  stop(turn: Turn): boolean;
  /** The server does not end a turn that is to stop. */
  abandon(): void;
  /** A frame of the server is of this turn. */
  readonly heard?: ((turn: Turn, event: TurnEvent, text: string) => void) | undefined;
  sign(text: string): void;
  /** How many frames wait has changed, or a turn is over. */
  moved(): void;
}

/** How long a server may go on with a response that is to stop. */
const mostEndingMs = 5_000;

export class Turns implements TurnOwner {
  readonly dialect: SocketDialect;
  /** Bytes of the client that wait behind its own turns. */
  heldBytes = 0;
  private readonly ports: TurnPorts;
  /** In the order of their events. */
  private readonly turns = new Set<Turn>();
  private held: (readonly [Frame, TurnEvent | undefined])[] = [];
  private isMoving = false;

  constructor(dialect: SocketDialect, ports: TurnPorts) {
    this.dialect = dialect;
    this.ports = ports;
  }

  get count(): number {
    return this.turns.size;
  }

  fromClient(frame: Frame): void {
    const event = frame.isBinary ? undefined : turnEvent(frame.data.toString());
    if (event !== undefined && cancelsTurn(event)) {
      if (!this.cancel(event)) this.ports.forward(frame);
    } else if (this.isBlocked(event)) {
      this.held.push([frame, event]);
      this.heldBytes += frame.data.length;
      this.ports.moved();
    } else this.take(frame, event);
  }

  /** `of`: the turn, if it is known. */
  fromServer(frame: Frame, of?: Turn): void {
    const text = frame.isBinary ? '' : frame.data.toString();
    const event = turnEvent(text);
    const turn = event && (of ?? this.turnOf(event));
    if (turn?.phase !== 'ending') this.ports.toClient(frame.data, frame.isBinary);
    if (turn === undefined || event === undefined) return;
    if (event.type === 'response.created') turn.responseId ??= event.responseId;
    this.ports.heard?.(turn, event, text);
    if (event.type === 'error' || endsTurn(event)) this.over(turn, turn.phase !== 'ending');
  }

  sign(text: string): void {
    this.ports.sign(text);
  }

  /** It has its seat. */
  grant(turn: Turn, flow: RequestFlow | undefined, mostMs: number): void {
    if (turn.phase !== 'waiting') return;
    turn.granted = flow;
    turn.phase = 'running';
    turn.after(mostMs, () => this.fail(turn, late));
    const { frame } = turn;
    turn.frame = undefined;
    if (frame !== undefined) this.ports.forward(frame, turn);
    this.move();
  }

  fail(turn: Turn, error: object): void {
    if (turn.isAnswered) return;
    const isAtServer = turn.phase === 'running' || !turn.isOwn;
    turn.phase = 'ending';
    this.ports.toClient(failureText(this.dialect, turn, error));
    if (!isAtServer || this.ports.stop(turn)) this.over(turn, false);
    else turn.after(mostEndingMs, () => this.ports.abandon());
  }

  /** It has ended: sent in whole, or not. */
  over(turn: Turn, isSent: boolean): void {
    if (!this.turns.delete(turn)) return;
    turn.phase = 'over';
    turn.end(isSent);
    this.move();
    this.ports.moved();
  }

  /** One of the sockets is gone: nothing of its turns can go on. */
  leave(): void {
    this.held = [];
    this.heldBytes = 0;
    for (const turn of this.turns) this.over(turn, false);
  }

  /** Every turn that waits or runs; `error` tells the client why. */
  failAll(error: object): void {
    for (const turn of this.turns) this.fail(turn, error);
  }

  private take(frame: Frame, event: TurnEvent | undefined): void {
    if (event?.type === 'response.create') this.begin(event, frame);
    else this.ports.forward(frame);
  }

  /** Without a frame: the server has begun it. */
  private begin(event: TurnEvent, frame?: Frame): Turn {
    const turn = new Turn(this, event, frame);
    if (frame === undefined) turn.responseId = event.responseId;
    this.turns.add(turn);
    this.ports.ask(turn);
    return turn;
  }

  /** False where the server is to hear of it. */
  private cancel({ lane, responseId }: TurnEvent): boolean {
    const isMeant = (turn: Turn): boolean =>
      responseId === undefined ? turn.event.lane === lane : turn.responseId === responseId || turn.id === responseId;
    const meant = [...this.turns].find(isMeant);
    const isHere = meant?.phase === 'waiting' ? meant.isOwn : this.ports.isServed;
    if (meant === undefined || !isHere) return false;
    this.ports.toClient(cancelledText(this.dialect, meant));
    this.over(meant, false);
    return true;
  }

  private isBlocked(event: TurnEvent | undefined): boolean {
    const isRealtime = this.dialect === 'realtime';
    if (!isRealtime && event?.type !== 'response.create') return false;
    for (const {
      isOwn,
      phase,
      event: { lane },
    } of this.turns)
      if (isRealtime ? isOwn && phase === 'waiting' : lane === event?.lane) return true;
    return false;
  }

  /** Frames that nothing stands before any more. */
  private move(): void {
    if (this.isMoving) return;
    this.isMoving = true;
    for (let at = 0; at >= 0; ) {
      at = this.held.findIndex(([, event]) => !this.isBlocked(event));
      const [next] = at < 0 ? [] : this.held.splice(at, 1);
      if (next === undefined) break;
      this.heldBytes -= next[0].data.length;
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
    const ofLane = atServer.filter((turn) => turn.event.lane === lane);
    if (type === 'error' && eventId !== undefined) return ofLane.find((turn) => turn.event.eventId === eventId);
    const unnamed = ofLane.find((turn) => turn.responseId === undefined);
    if (type === 'response.created' && unnamed === undefined) return this.begin(event);
    // In Realtime most errors end nothing: one that names no event is taken for that of a response that has not begun.
    return unnamed ?? (this.dialect === 'realtime' ? undefined : ofLane[0]);
  }
}

const late = fault(504, 'ERR_FLOW_TURN_TIMEOUT', 'The response took too long.');
