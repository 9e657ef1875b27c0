/**
 * Saturation as the simulated servers know it: 0 while one would begin a request, else 1. No gateway knows this: the
 * controller then acts as a scheduler inside the server, as in papers whose scheduler is inside the engine.
 */
import { Listeners } from '../../base/listeners.js';
import * as s from '../../base/schema/schema.js';
import { definePlugin, type EndpointView, type SaturationDetector } from '../../index.js';
import type { PluginDefinition } from '../../types/index.js';

const serverRoomType = 'server-room-detector';

export interface ServerRoomDetector extends SaturationDetector {
  /** Connects the detector with the servers of one simulation: which of them would begin with one more request? */
  attach(roomOf: (endpointId: string) => boolean): void;
  /** A server may have room. */
  roomMade(): void;
}

/** Give one to the controller of a simulation; a simulation attaches it to its servers. */
export function serverRoomDetector(): ServerRoomDetector {
  let roomOf: Parameters<ServerRoomDetector['attach']>[0] = () => true;
  const { subscribe, announce } = new Listeners();
  const hasRoom = ({ id }: EndpointView): boolean => roomOf(id);
  return {
    type: serverRoomType,
    saturation: (pool) => (pool.endpoints.some(hasRoom) ? 0 : 1),
    filter: (endpoints) => endpoints.filter(hasRoom),
    subscribe,
    attach(room) {
      roomOf = room;
    },
    roomMade: announce,
  };
}

export function isServerRoomDetector(candidate: unknown): candidate is ServerRoomDetector {
  return typeof candidate === 'object' && candidate !== null && Reflect.get(candidate, 'type') === serverRoomType;
}

/** For registries, so that scenario files can name it. */
export const serverRoomPlugin: PluginDefinition<'saturationDetector'> = definePlugin({
  kind: 'saturationDetector',
  type: serverRoomType,
  parameters: s.object({}),
  create: () => serverRoomDetector(),
});
