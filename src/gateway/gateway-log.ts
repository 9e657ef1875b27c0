/** What the gateway says: one line for each event, to whoever reads them. Never a prompt, an answer or a key. */

export type LogLevel = 'info' | 'warn' | 'error';
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;
export type GatewayLog = (level: LogLevel, event: string, fields?: LogFields) => void;

/** Lines of JSON, or of `key=value` for people. */
export function lineLog(format: 'json' | 'text', write: (line: string) => void, now: () => Date = () => new Date()): GatewayLog {
  return function log(level, event, fields = {}) {
    const given = Object.entries(fields).filter(([, value]) => value !== undefined);
    const entries = [['time', now().toISOString()], ['level', level], ['event', event], ...given] as const;
    if (format === 'json') write(`${JSON.stringify(Object.fromEntries(entries))}\n`);
    else write(`${entries.map(([key, value], index) => (index < 3 ? plain(value) : `${key}=${plain(value)}`)).join(' ')}\n`);
  };
}

/** As it stands when it is one plain word. */
function plain(value: unknown): string {
  const text = String(value);
  return /^[\w./:@+-]+$/.test(text) ? text : JSON.stringify(text);
}
