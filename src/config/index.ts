/** `headgate/config`: EndpointPickerConfig, InferenceObjective and BLIS files, Dynamo's environment. Needs `yaml`. */
export { type BlisPolicy, type LoadBlisPolicyOptions, loadBlisPolicy } from './blis-policy.js';
export type { ConfigSource } from './documents.js';
export * from './dynamo-environment.js';
/** @internal */
export { endpointPickerJsonSchema, flowSectionsJson, loadSections } from './file-json.js';
export { type LoadConfigOptions, type LoadedConfig, loadConfig } from './load-config.js';
