/** Messages of Envoy's external processing: bytes are a message that can be written and read again, or an error. */
import { codecOf, type ProcessingRequest } from '../src/adapters/ext-proc/messages.js';
import { orName, same } from './inputs.js';

const codec = codecOf<ProcessingRequest>('ProcessingRequest');

export function fuzz(input: Buffer): void {
  const message = orName(
    () => codec.decode(input),
    (error) => error instanceof Error,
  );
  if (typeof message !== 'string') same('written and read again', codec.decode(codec.encode(message)), message);
}
