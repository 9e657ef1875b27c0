/** What `headgate simulate` and `headgate schema` are made of, beside what programs use. */
export { figure as formatFigure } from './report/format.js';
export { distrust, heldTable } from './report/held-against-log.js';
export { htmlReport } from './report/html-report.js';
export { comparisonTable, resultTable } from './report/text-table.js';
export { scenarioFileTable, withTraceFiles } from './scenario/scenario-json.js';
export { scenarioValue, withScenarioValue } from './scenario/value-path.js';
export { type Condition, failuresOf, parseConditions, withServedDefault, worstMiss } from './search/condition.js';
export { type FoundValues, findValue } from './search/find-value.js';
export { type Measure, parseMeasure, type Spread, spreadOf } from './search/measure.js';
export { combinations, parseSweepAxis } from './search/sweep.js';
export { leftOut } from './traces/read-trace.js';
