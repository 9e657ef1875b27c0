/** The log of the command on standard error, in the format of the file: one program can read every line. */
import { format as formatted } from 'node:util';
import { readYaml } from '../../config/read-yaml.js';
import { FlowConfigError } from '../../index.js';
import { type GatewayLog, lineLog } from '../index.js';

export type LogFormat = 'json' | 'text';

export class CommandLog {
  readonly log: GatewayLog = (level, event, fields) => {
    this.line(level, event, fields);
    if (level !== 'info' || event !== 'request') this.flush();
  };
  private readonly given: LogFormat | undefined;
  private readonly writer: BufferedWriter;
  private format: LogFormat;
  private line: GatewayLog;

  /** `format` of the command line wins over that of the file. `isOneOfMany`: others write to the same place. */
  constructor(format: LogFormat | undefined, isOneOfMany = false) {
    this.writer = bufferedWriter((text) => void process.stderr.write(text), isOneOfMany ? mostAtOnce : undefined);
    this.given = format;
    this.format = format ?? 'text';
    this.line = lineLog(this.format, this.writer.write);
  }

  /** Takes the format that the file asks for, also from a file with faults. */
  follow(source: string): void {
    const format = this.given ?? formatOf(source);
    if (format === this.format) return;
    this.format = format;
    this.line = lineLog(format, this.writer.write);
  }

  /** Writes why the file cannot be used: one line for each fault for machines, or the message for people. */
  faults(file: string, event: 'not-started' | 'reload-refused', error: unknown): void {
    const issues = error instanceof FlowConfigError ? error.issues : [];
    const message = error instanceof Error ? error.message : String(error);
    if (this.format === 'text') {
      this.flush();
      process.stderr.write(`${message}\n`);
    } else {
      for (const { path, expected, got } of issues) this.log('error', 'fault', { file, path, expected, got });
    }
    this.log('error', event, { file, ...(issues.length > 0 ? { problems: issues.length } : { error: message }) });
  }

  flush(): void {
    this.writer.flush();
  }

  /** Takes over what Node, and plugins by `console`, would write by themselves. Returns a function that stops this. */
  takeOver(): () => void {
    const { warn, error: complain } = console;
    console.warn = (...said: unknown[]) => this.log('warn', 'console', { message: formatted(...said) });
    console.error = (...said: unknown[]) => this.log('error', 'console', { message: formatted(...said) });
    const warned = ({ name, message }: Error): void => this.log('warn', 'node-warning', { name, message });
    const ended = (): void => this.flush();
    const crashed = (error: unknown): void => {
      this.log('error', 'crashed', { error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
      process.exit(1);
    };
    const before = process.listeners('warning');
    process.removeAllListeners('warning');
    process.on('warning', warned).on('exit', ended).on('uncaughtException', crashed);
    return () => {
      Object.assign(console, { warn, error: complain });
      process.off('warning', warned).off('exit', ended).off('uncaughtException', crashed);
      for (const listener of before) process.on('warning', listener);
    };
  }
}

/** The format that the file asks for; text if it says nothing or is no YAML. */
function formatOf(source: string): LogFormat {
  const [file] = readYaml(source, () => {});
  const log: unknown = Reflect.get(Object(file?.value), 'log');
  return Reflect.get(Object(log), 'format') === 'json' ? 'json' : 'text';
}

const everyMs = 50;
const mostCharacters = 65_536;
/** A pipe takes 4,096 bytes as a whole; a character has three at most. */
const mostAtOnce = 1_365;

type BufferedWriter = Readonly<{ write: (line: string) => void; flush: () => void }>;

/** Writes less often, as each blocks. Invariant: lines keep their order; none is held longer than `everyMs`. */
export function bufferedWriter(write: (text: string) => void, most: number = mostCharacters): BufferedWriter {
  let held = '';
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (held === '') return;
    const text = held;
    held = '';
    write(text);
  };
  return {
    write(line) {
      if (held.length + line.length > most) flush();
      held += line;
      if (held.length >= most) flush();
      else timer ??= setTimeout(flush, everyMs).unref();
    },
    flush,
  };
}
