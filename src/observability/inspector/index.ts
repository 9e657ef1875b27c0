/** `headgate/inspector`: a live page of one controller, for people who may see it. */
export type { FrameBand, FrameEndpoint, FrameFlow, FrameWait, InspectorFrame } from './frame.js';
export { type Inspector, inspector } from './inspector.js';
export type { InspectedFlow, InspectorOptions, InspectorRequest } from './options.js';
