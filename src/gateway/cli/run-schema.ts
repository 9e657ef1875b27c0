/** `headgate schema KIND`: the JSON Schema of a kind of files, for editors. */
import { jsonSchemaOf } from '../../base/schema/json-schema.js';
import { endpointPickerJsonSchema } from '../../config/index.js';
import { scenarioFileTable, withTraceFiles } from '../../simulator/index.js';
import { eppSettings } from '../epp/epp-config.js';
import { fileSchema } from '../settings/file-schema.js';
import type { SchemaKind } from './arguments.js';

const schemas: Readonly<Record<SchemaKind, () => string>> = {
  gateway: () => jsonSchemaOf('Gateway file of headgate', fileSchema({ env: {}, readFile: () => '' })),
  'endpoint-picker': () => endpointPickerJsonSchema(eppSettings),
  scenario: () => withTraceFiles(jsonSchemaOf('Scenario of headgate simulate', scenarioFileTable())),
};

export function runSchema({ kind }: { readonly kind: SchemaKind }): number {
  process.stdout.write(schemas[kind]());
  return 0;
}
