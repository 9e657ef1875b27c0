/** `headgate/inspector`: a live page of one controller, for people who may see it. */
export type { FrameBand, FrameEndpoint, FrameFlow, FrameWait, FrameWhole, InspectorFrame } from './frame.js';
export { type FoundWait, type Inspector, inspector } from './inspector.js';
export { type BasicLoginOptions, basicLogin } from './login.js';
export type { InspectorOptions, InspectorRequest, InspectorView } from './options.js';
/** @internal */
export { count, gateWords, rate, time } from './page/browser/figures.js';
export type { FrameLease, FrameShared, InspectedLease, InspectedShares, InspectedStore } from './shared-limits.js';
export type { FrameTenant } from './tenants.js';
