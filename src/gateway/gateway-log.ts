/** Writes the gateway's log: one line for each event. Never a prompt, an answer or a key. */

export type LogLevel = 'info' | 'warn' | 'error';
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;
export type GatewayLog = (level: LogLevel, event: string, fields?: LogFields) => void;

/** Lines of JSON, or of `key=value` for people. */
export function lineLog(format: 'json' | 'text', write: (line: string) => void, now: () => Date = () => new Date()): GatewayLog {
  return function log(level, event, fields = {}) {
    const time = now().toISOString();
    const line = format === 'json' ? JSON.stringify({ time, level, event, ...fields }) : textLine(`${time} ${level} ${event}`, fields);
    write(`${escaped(line)}\n`);
  };
}

function textLine(head: string, fields: LogFields): string {
  let line = head;
  for (const [key, value] of Object.entries(fields)) if (value !== undefined) line += ` ${key}=${plain(value)}`;
  return line;
}

/**
 * Characters that a terminal acts on or shows otherwise than they stand: control characters, marks that turn the direction of text, separators of
 * lines. JSON leaves them as they are; an escape of JSON is read the same.
 */
const unprintable = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

function escaped(line: string): string {
  return line.replace(unprintable, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** As it stands when it is one plain word. */
function plain(value: unknown): string {
  const text = String(value);
  return /^[\w./:@+-]+$/.test(text) ? text : JSON.stringify(text);
}
