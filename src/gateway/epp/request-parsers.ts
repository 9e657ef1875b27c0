/** What an endpoint picker must find in a body, by the path of the request. Source: llm-d-router, its parsers. */
import type { ExtProcRequest } from '../../adapters/ext-proc/index.js';
import { type GenerationBody, GenerationBodyReader } from '../bodies/generation-body.js';
import { ApiError } from '../shared/api-error.js';

/** By the end of a path: the field that has the prompt. */
type Paths = Readonly<Record<string, string>>;

/** A path without an entry here is one that the parser does not know. */
const parsers: Readonly<Record<string, Paths>> = {
  'openai-parser': {
    'chat/completions': 'messages',
    completions: 'prompt',
    embeddings: 'input',
    responses: 'input',
    conversations: '',
    'images/generations': 'prompt',
    'chat/completions/render': 'messages',
    'completions/render': 'prompt',
  },
  'anthropic-parser': { messages: 'messages' },
  'vllmhttp-parser': { 'inference/v1/generate': '' },
  // Bytes that are not looked at.
  'vllmgrpc-parser': {},
  'passthrough-parser': {},
};

/** Takes every path, and looks at nothing. */
const passing: readonly string[] = ['passthrough-parser', 'vllmgrpc-parser'];

export const parserTypes: readonly string[] = Object.keys(parsers);

/** Those of a file that names none. */
export const defaultParsers: readonly string[] = parserTypes.filter((type) => type !== 'vllmgrpc-parser');

/** The end of a path that a parser knows, and the field that has the prompt. */
type Ending = readonly [end: string, field: string];

export class RequestParsers {
  private readonly types: readonly string[];
  private readonly known: readonly Ending[];

  constructor(types: readonly string[]) {
    this.types = types;
    this.known = types.flatMap((type) => Object.entries(parsers[type] ?? {})).sort(([a], [b]) => b.length - a.length);
  }

  /** Undefined: nobody reads it. @throws ApiError 400: no parser takes the path, or the body is not what it wants */
  parse(request: ExtProcRequest): GenerationBody | undefined {
    const { path, headers } = request;
    const told = path || headers.get('x-original-path') || headers.get('x-forwarded-path') || 'completions';
    const ending = this.known.find(([end]) => told === end || told.endsWith(`/${end}`));
    if (ending === undefined && this.types.some((type) => passing.includes(type))) return undefined;
    if (ending === undefined)
      throw new ApiError(400, 'unknown_path', `No parser takes the path ${JSON.stringify(told.slice(0, 200))}.`);
    const [end, field] = ending;
    const reader = new GenerationBodyReader();
    reader.push(request.body);
    const body = reader.end(request.body);
    if (field !== '' && !body.spans.has(field))
      throw new ApiError(400, 'missing_field', `The body has no ${field}, which ${end} needs.`);
    return body;
  }
}
