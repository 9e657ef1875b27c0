/** Writes the gateway's log: one line for each event. It never writes a prompt, an answer or a key. */
export type LogLevel = 'info' | 'warn' | 'error';
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;
export type GatewayLog = (level: LogLevel, event: string, fields?: LogFields) => void;

/** If the host's log function fails, the line is lost, because an exception here would end the process. */
export function contained(log: GatewayLog): GatewayLog {
  return (level, event, fields) => {
    try {
      const answer: unknown = log(level, event, fields);
      if (answer instanceof Promise) answer.catch(() => {});
    } catch {
      // There is no other place to report it.
    }
  };
}

/** Lines of JSON, or of `key=value` for people. */
export function lineLog(
  format: 'json' | 'text',
  write: (line: string) => void,
  now: () => Date = () => new Date(),
): GatewayLog {
  const timeOf = timestamps();
  return function log(level, event, fields = {}) {
    const time = timeOf(now());
    if (format === 'json') write(`${escaped(JSON.stringify({ time, level, event, ...fields }))}\n`);
    else write(`${textLine(`${time} ${level} ${event}`, fields)}\n`);
  };
}

/** Instants in ISO 8601. Thousands of lines a second, as a busy gateway writes them, differ in milliseconds alone. */
function timestamps(): (at: Date) => string {
  let second = NaN;
  let upToSecond = '';
  return (at) => {
    const epochMs = at.getTime();
    const ms = epochMs % 1000;
    if (epochMs - ms !== second) {
      second = epochMs - ms;
      upToSecond = at.toISOString().slice(0, -4);
    }
    return `${upToSecond}${String(ms).padStart(3, '0')}Z`;
  };
}

function textLine(head: string, fields: LogFields): string {
  let line = head;
  for (const key in fields) {
    const value = fields[key];
    if (value !== undefined) line += ` ${key}=${typeof value === 'string' ? plain(value) : value}`;
  }
  return line;
}

/** What a terminal acts on: controls, marks of direction, separators of lines. Escapes of JSON read the same. */
const unprintable = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

function escaped(line: string): string {
  return line.replace(unprintable, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The text itself if it is one plain word; otherwise quoted. */
const plain = (text: string): string => (/^[\w./:@+-]+$/.test(text) ? text : escaped(JSON.stringify(text)));
