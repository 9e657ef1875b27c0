/**
 * Keys of vectors that no runner looks at, by kind, each with its reason: things of the reference that do not exist
 * here, so that there is nothing to compare. Whatever is not listed must be understood by the runner.
 */

const noSweep = 'a request expires at its deadline: there is no sweep, and no interval of one';
const noInbox =
  'a request is queued or rejected in the turn in which it comes: there is no inbox between caller and queue';
const noLog = 'headgate does not log; the figure is there to be read';
const ownBodies = 'bodies are problem details or OpenAI errors, or come from a function of the host';
const noServers = 'no vector waits for the end of a request, so that no server is needed';
const noHandles = 'no caller holds a queue handle, so none can be wrong';
const ownWords = 'messages are written anew';
const otherHeader = 'a header that must make no difference';

export const notCompared: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'detector.staleGauge': { 'expect.logsWithinInterval': noLog },
  'controller.config': {
    'input.options.expiryCleanupIntervalMs': noSweep,
    'input.options.enqueueChannelBufferSize': noInbox,
    'expect.config.expiryCleanupIntervalMs': noSweep,
    'expect.config.enqueueChannelBufferSize': noInbox,
  },
  'controller.configFromYaml': {
    'expect.expiryCleanupIntervalMs': noSweep,
    'expect.enqueueChannelBufferSize': noInbox,
  },
  'loader.featureGate': { 'expect.expiryCleanupIntervalMs': noSweep, 'expect.enqueueChannelBufferSize': noInbox },
  'admission.probabilistic': { 'input.endpoints[].metrics.ageMs': 'reports do not grow stale for this policy' },
  'cluster-scenario': {
    'input.requests[].inputTokens': noServers,
    'input.requests[].outputTokens': noServers,
  },
  'detector.saturation': { 'input.endpoints[].metadata': 'what says nothing is as good as absent' },
  'headers.agentIdentity': { 'input.headers.session_id': otherHeader, 'input.headers.x-unrelated': otherHeader },
  'ordering.sloDeadline': { 'input.headers.x-some-header': otherHeader },
  'http-rejection': { 'input.cases[].body': ownBodies },
  'slo-attainment': { 'input.injectedByClass.batch': 'a class without a target does not count' },
  'threshold-scaling': { 'input.cases[].stored': 'nothing is stored but the threshold itself' },
  'queue.removeError': { 'expect.error': noHandles },
  'errors.evictResponse': { 'expect.body': ownBodies },
  'gateway-queue': {
    'input.recommendedOrder': 'the advice of whoever wrote the vector; what headgate does is checked',
  },
  'errors.http': { 'expect.body': ownBodies, 'input.message': ownBodies },
  'admission.legacy': {
    'expect.messageContains': ownWords,
    'expect.reason': 'the reference leaves this header out here; a drop of ours always says why it happened',
  },
  'errors.capacityHint': { 'expect.messageContains': ownWords },
  'integration.script': { 'input.sweepMs': noSweep },
};
