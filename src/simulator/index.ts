/** `headgate/simulator`: the controller on simulated servers and traffic. Runs in browsers; files need `yaml`. */

/** @internal The parts of `headgate simulate`. */
export * from './command-parts.js';
export type { RunCounts, ServerFigures, SimulationResult } from './engine/result.js';
export { type SimulateHooks, Simulation, simulate, simulateSeeds } from './engine/simulation.js';
export type { LoadReports, ScenarioBody, SimulatedFlow, SimulationOptions } from './engine/simulation-options.js';
export type { GroupFigures } from './measures/group.js';
export type { Latency } from './measures/samples.js';
export type { ServiceDifference, ServiceDifferenceOptions } from './measures/service-difference.js';
export { serviceDifference } from './measures/service-difference.js';
export type { TimeSeries } from './measures/time-series.js';
export type { Distribution } from './random/distributions.js';
export type { Rate } from './random/rate-profile.js';
export { type HeldTime, heldAgainstLog } from './report/held-against-log.js';
export type { Ending, RequestRecord, SimRequest } from './requests/sim-request.js';
export { type LoadScenarioOptions, loadScenario, type Scenario } from './scenario/load-scenario.js';
export type { Outage, Slowdown } from './servers/server-faults.js';
export { type ServerRoomDetector, serverRoomDetector } from './servers/server-room-detector.js';
export type { ServerSpec } from './servers/server-spec.js';
export type { ServerFactory, ServerHost, ServerLoad, ServerUse, SimServer } from './servers/sim-server.js';
export { type CalibrateOptions, type Calibration, calibrate } from './traces/calibrate.js';
export { type ReadTrace, type ReadTraceOptions, readTrace } from './traces/read-trace.js';
export { type ScenarioFromTraceOptions, scenarioFromTrace } from './traces/scenario-from-trace.js';
export type { TraceRow } from './traces/trace-row.js';
export type { Arrivals, ClientSpec, RetrySpec, SloSpec, TrafficSpec } from './traffic/traffic-spec.js';
