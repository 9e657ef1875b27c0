/** `headgate/simulator`: the controller on simulated servers and traffic. Runs in browsers; files need `yaml`. */
export type { RunCounts, ServerFigures, SimulationResult } from './engine/result.js';
export { Simulation } from './engine/simulation.js';
export type { LoadReports, ScenarioBody, SimulatedFlow, SimulationOptions } from './engine/simulation-options.js';
export type { GroupFigures } from './measures/group.js';
export { maxMinShares } from './measures/max-min-shares.js';
export type { RequestRecord } from './measures/request-record.js';
export type { Latency } from './measures/samples.js';
export {
  type ServiceDifference,
  type ServiceDifferenceOptions,
  serviceDifference,
} from './measures/service-difference.js';
export type { TimeSeries } from './measures/time-series.js';
export type { Distribution } from './random/distributions.js';
export type { Rate } from './random/rate-profile.js';
export { figure as formatFigure } from './report/format.js';
export { distrust, type HeldTime, heldAgainstLog, heldTable } from './report/held-against-log.js';
export { htmlReport } from './report/html-report.js';
export { comparisonTable, resultTable } from './report/text-table.js';
export type { Ending, SimRequest } from './requests/sim-request.js';
export { type LoadScenarioOptions, loadScenario, type Scenario } from './scenario/load-scenario.js';
/** @internal */
export { scenarioFileTable, withTraceFiles } from './scenario/scenario-json.js';
export { scenarioValue, withScenarioValue } from './scenario/value-path.js';
export { type Condition, failuresOf, parseConditions, withServedDefault, worstMiss } from './search/condition.js';
export {
  type FindOptions,
  type FoundValues,
  findValue,
  type TriedValue,
  type ValueRange,
} from './search/find-value.js';
export { type Measure, parseMeasure, type Spread, spreadOf } from './search/measure.js';
export { combinations, parseSweepAxis, type SweepAxis } from './search/sweep.js';
export type { Outage, Slowdown } from './servers/server-faults.js';
export { type ServerRoomDetector, serverRoomDetector } from './servers/server-room-detector.js';
export type { ServerSpec } from './servers/server-spec.js';
export type { ServerFactory, ServerHost, ServerLoad, ServerUse, SimServer } from './servers/sim-server.js';
export { type SimulateHooks, simulate, simulateSeeds } from './simulate.js';
export { type CalibrateOptions, type Calibration, calibrate } from './traces/calibrate.js';
export { leftOut, type ReadTrace, type ReadTraceOptions, readTrace } from './traces/read-trace.js';
export { type ScenarioFromTraceOptions, scenarioFromTrace } from './traces/scenario-from-trace.js';
export type { TraceRow } from './traces/trace-row.js';
export type { Arrivals, ClientSpec, RetrySpec, SloSpec, TrafficSpec } from './traffic/traffic-spec.js';
