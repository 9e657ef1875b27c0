/** Responses as the interfaces send them. */

export const chatUsage = {
  prompt_tokens: 12,
  total_tokens: 16,
  completion_tokens: 4,
  prompt_tokens_details: { cached_tokens: 8 },
};

function chatChunk(delta: object | undefined, more: object = {}): string {
  const choices = delta === undefined ? [] : [{ index: 0, delta, logprobs: null, finish_reason: null }];
  return `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })}\n\n`;
}

/** Four tokens, one of them of several bytes; usage only where the client asked for it. */
export function chatStream(usage?: object): string {
  const words = ['Hel', 'lo ', '🚀', ' "usage": {'];
  return [
    chatChunk({ role: 'assistant', content: '' }, usage === undefined ? {} : { usage: null }),
    ...words.map((content) => chatChunk({ content }, usage === undefined ? {} : { usage: null })),
    chatChunk({}, { usage: null }),
    ...(usage === undefined ? [] : [chatChunk(undefined, { usage })]),
    'data: [DONE]\n\n',
  ].join('');
}

/** vLLM with `continuous_usage_stats`: every chunk tells, and may hold several tokens. */
export const continuousStream = [3, 6, 9]
  .map((completion_tokens) =>
    chatChunk(
      { content: 'three tokens here' },
      { usage: { prompt_tokens: 12, total_tokens: 12 + completion_tokens, completion_tokens } },
    ),
  )
  .join('');

export const toolStream = [
  chatChunk({
    role: 'assistant',
    content: null,
    tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '' } }],
  }),
  chatChunk({ tool_calls: [{ index: 0, function: { arguments: '{"a"' } }] }),
  chatChunk({ reasoning_content: 'hm' }),
].join('');

export const completionStream = `data: {"id":"cmpl-1","object":"text_completion","choices":[{"index":0,"text":"Hi"},{"index":1,"text":"Ho"}]}

data: {"id":"cmpl-1","object":"text_completion","choices":[{"index":0,"text":"","finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}

data: [DONE]

`;

const responsesEvents: readonly (readonly [string, object])[] = [
  ['response.created', { response: { id: 'resp_1', status: 'in_progress', usage: null } }],
  ['response.output_item.added', { item: { type: 'message' } }],
  ['response.output_text.delta', { delta: 'Hi' }],
  ['response.output_text.delta', { delta: ' there' }],
  ['response.output_text.done', { text: 'Hi there' }],
  [
    'response.completed',
    {
      response: {
        id: 'resp_1',
        usage: { input_tokens: 20, input_tokens_details: { cached_tokens: 16 }, output_tokens: 5, total_tokens: 25 },
      },
    },
  ],
];
export const responsesStream = responsesEvents
  .map(
    ([type, event], index) => `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: index, ...event })}\n\n`,
  )
  .join('');

const messagesEvents: readonly (readonly [string, object])[] = [
  [
    'message_start',
    {
      message: {
        id: 'msg_1',
        usage: { input_tokens: 10, cache_creation_input_tokens: 20, cache_read_input_tokens: 70, output_tokens: 1 },
      },
    },
  ],
  ['content_block_start', { index: 0, content_block: { type: 'text', text: '' } }],
  ['ping', {}],
  ['content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Hello' } }],
  ['content_block_delta', { index: 0, delta: { type: 'text_delta', text: ' you' } }],
  ['content_block_stop', { index: 0 }],
  ['message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 15 } }],
  ['message_stop', {}],
];
export const messagesStream = messagesEvents
  .map(([type, event]) => `event: ${type}\ndata: ${JSON.stringify({ type, ...event })}\n\n`)
  .join('');
