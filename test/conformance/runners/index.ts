/** Every kind of vector that headgate can play. */
import type { Runners } from '../support/runner.js';
import { admissionRunners } from './admission.js';
import { admissionPolicyRunners } from './admission-policies.js';
import { budgetRunners } from './budgets.js';
import { busyWorkerRunners } from './busy-workers.js';
import { capacityRunners } from './capacity.js';
import { ceilingRunners } from './ceilings.js';
import { clusterRunners } from './cluster.js';
import { configFileRunners } from './config-files.js';
import { controllerRunners } from './controller.js';
import { detectorRunners } from './detectors.js';
import { dispatchRunners } from './dispatch.js';
import { endpointRunners } from './endpoints.js';
import { evictionRunners } from './eviction.js';
import { fairnessRunners } from './fairness.js';
import { gatewayQueueRunners } from './gateway-queue.js';
import { handoffRunners } from './handoff.js';
import { httpRunners } from './http.js';
import { incomingRunners } from './incoming.js';
import { integrationRunners } from './integration.js';
import { metricsRunners } from './metrics.js';
import { optionRunners } from './options.js';
import { orderingRunners } from './ordering.js';
import { outcomeRunners } from './outcomes.js';
import { pluginRunners } from './plugins.js';
import { policyBundleRunners } from './policy-bundles.js';
import { programRunners } from './programs.js';
import { queueRunners } from './queues.js';
import { reclamationRunners } from './reclamation.js';
import { registryRunners } from './registry.js';
import { reportRunners } from './reports.js';
import { retryAfterRunners } from './retry-after.js';
import { stageRunners } from './stages.js';
import { tokenFairnessRunners } from './token-fairness.js';
import { workerAdmissionRunners } from './worker-admission.js';

export const runners: Runners = {
  ...fairnessRunners,
  ...programRunners,
  ...tokenFairnessRunners,
  ...endpointRunners,
  ...orderingRunners,
  ...detectorRunners,
  ...incomingRunners,
  ...pluginRunners,
  ...ceilingRunners,
  ...stageRunners,
  ...busyWorkerRunners,
  ...capacityRunners,
  ...dispatchRunners,
  ...budgetRunners,
  ...outcomeRunners,
  ...controllerRunners,
  ...registryRunners,
  ...configFileRunners,
  ...optionRunners,
  ...queueRunners,
  ...httpRunners,
  ...admissionRunners,
  ...admissionPolicyRunners,
  ...workerAdmissionRunners,
  ...policyBundleRunners,
  ...reclamationRunners,
  ...evictionRunners,
  ...gatewayQueueRunners,
  ...clusterRunners,
  ...integrationRunners,
  ...metricsRunners,
  ...reportRunners,
  ...handoffRunners,
  ...retryAfterRunners,
};
