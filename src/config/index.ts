/** `headgate/config`: EndpointPickerConfig and InferenceObjective files. Needs the package `yaml`. */
export type { ConfigSource } from './documents.js';
export { type LoadConfigOptions, type LoadedConfig, loadConfig } from './load-config.js';
