/** `headgate/ws`: a lease for each turn of a WebSocket, and none while it is idle. */
export { type FlowTurnsOptions, flowTurns, type ServedTurn, type SocketTurns } from './flow-turns.js';
export type { SocketDialect, TurnEvent } from './turn-events.js';
export type { WebSocketLike } from './turn-socket.js';
