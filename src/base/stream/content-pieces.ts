/** Finds the events of a streamed answer that bring text of the model, in the interfaces of OpenAI and of Anthropic. */

type Fields = Readonly<Record<string, unknown>>;

/** Undefined for anything but an object. */
export function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null ? (value as Fields) : undefined;
}

/** Undefined when the text is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Keys of a delta that hold what the model wrote: text, reasoning, tool calls, in the words of three interfaces. */
const contentKeys = [
  'content',
  'reasoning_content',
  'reasoning',
  'refusal',
  'tool_calls',
  'function_call',
  'text',
  'thinking',
  'partial_json',
];

function isContent(value: unknown): boolean {
  return typeof value === 'string' || Array.isArray(value) ? value.length > 0 : fieldsOf(value) !== undefined;
}

function hasContent(delta: unknown): boolean {
  const fields = fieldsOf(delta);
  return fields !== undefined && contentKeys.some((key) => isContent(fields[key]));
}

/** How many pieces of content one event of a stream brings: engines send about one token in each. */
export function contentPieces(event: unknown): number {
  const fields = fieldsOf(event);
  if (fields === undefined) return 0;
  const { choices, type, delta } = fields;
  if (Array.isArray(choices)) {
    return choices.filter((choice: unknown) => hasContent(fieldsOf(choice)?.delta) || isContent(fieldsOf(choice)?.text))
      .length;
  }
  if (type === 'content_block_delta') return hasContent(delta) ? 1 : 0;
  return typeof type === 'string' && type.endsWith('.delta') && isContent(delta) ? 1 : 0;
}
