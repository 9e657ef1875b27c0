/**
 * Keys of vectors that no runner looks at, by kind, each with its reason: things of the reference that do not exist here, so that
 * there is nothing to compare. Whatever is not listed must be understood by the runner.
 */

const noSweep = 'a request expires at its deadline: there is no sweep, and no interval of one';
const noInbox = 'a request is queued or rejected in the turn in which it comes: there is no inbox between caller and queue';
const noLog = 'headgate does not log; the figure is there to be read';
const ownBodies = 'bodies are problem details or OpenAI errors, or come from a function of the host';
const noHandles = 'no caller holds a queue handle, so none can be wrong';
const ownWords = 'messages are written anew';

export const notCompared: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'detector.staleGauge': { 'expect.logsWithinInterval': noLog },
  'controller.config': {
    'config.expiryCleanupIntervalMs': noSweep,
    'config.enqueueChannelBufferSize': noInbox,
    'config.enableEviction': 'eviction of running requests is not built',
    'config.maxRevocationsPerDecision': 'eviction of running requests is not built',
    'config.evictionConfirmationGraceMs': 'eviction of running requests is not built',
    'config.evictionConfirmationTimeoutMs': 'eviction of running requests is not built',
  },
  'controller.configFromYaml': {
    'expect.expiryCleanupIntervalMs': noSweep,
    'expect.enqueueChannelBufferSize': noInbox,
  },
  'loader.featureGate': { 'expect.expiryCleanupIntervalMs': noSweep, 'expect.enqueueChannelBufferSize': noInbox },
  'queue.removeError': { 'expect.error': noHandles },
  'errors.http': { 'expect.body': ownBodies, 'input.message': ownBodies },
  'errors.capacityHint': { 'expect.messageContains': ownWords },
  'integration.script': { 'input.sweepMs': noSweep },
};
