/** The commands that read files. They are in a module of their own, because they need packages that may be missing. */
export { runCheck } from './run-check.js';
export { runEpp } from './run-epp.js';
export { runGateway } from './run-gateway.js';
export { runInit } from './run-init.js';
export { runSchema } from './run-schema.js';
export { runSimulate } from './simulate/run-simulate.js';
