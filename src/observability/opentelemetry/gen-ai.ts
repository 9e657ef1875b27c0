/** What a request asks, and by which interface, in the words of the conventions for generative AI. */
import type { Attributes } from '@opentelemetry/api';
import { requestField } from '../../base/request-field.js';
import { attributes } from './instruments.js';

/** By the end of the path. */
const operations: readonly (readonly [end: RegExp, operation: string])[] = [
  [/\/(?:chat\/completions|messages|responses|realtime)$/, 'chat'],
  [/\/completions$/, 'text_completion'],
  [/\/embeddings$/, 'embeddings'],
  [/:(?:stream)?generateContent$|\/(?:images|audio|videos)\//i, 'generate_content'],
];

/**
 * Operation and provider: those that the request names itself, else by the path of its `req`. The provider is the
 * flavour of the interface, so that servers which speak OpenAI's are `openai`. `bounded` keeps the values few.
 */
export function genAiAttributes(request: unknown, bounded = (value: string): string => value): Attributes {
  const told = (name: string): string => String(requestField(request, name) ?? '');
  const req = requestField(request, 'req');
  const url = requestField(req, 'originalUrl') ?? requestField(req, 'url') ?? requestField(req, 'path') ?? '';
  const [path = ''] = String(url).split(/[?#]/, 1);
  const byPath = path === '' ? 'chat' : operations.find(([end]) => end.test(path))?.[1];
  const flavour = path.endsWith('/messages') ? 'anthropic' : 'openai';
  return {
    [attributes.operation]: bounded(told('operation') || byPath || 'other'),
    // The AI SDK names its providers `anthropic.messages`.
    [attributes.provider]: bounded(told('provider').replace(/\..*/s, '') || flavour),
  };
}
