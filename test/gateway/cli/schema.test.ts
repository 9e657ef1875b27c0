/**
 * The JSON Schemas of our files, asked as editors ask them: through a YAML language server. It is installed on its own
 * (`npm install --no-save yaml-language-server`); where it is not there, the tests say so and are skipped.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseCommand } from '../../../src/gateway/cli/arguments.js';
import { runSchema } from '../../../src/gateway/cli/run-schema.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const server = join(root, 'node_modules/yaml-language-server/bin/yaml-language-server');
const isInstalled = existsSync(server);
const kinds = ['gateway', 'endpoint-picker', 'scenario'] as const;
const examples = [
  'examples/gateway.yaml',
  'examples/replicas/gateway.yaml',
  'examples/gateway/gateway.yaml',
  'examples/epp/epp.yaml',
  ...readdirSync(join(root, 'examples/scenarios')).map((name) => `examples/scenarios/${name}`),
].filter((name) => name.endsWith('.yaml'));

interface JsonSchema {
  readonly properties?: Readonly<Record<string, { readonly description?: string }>>;
  readonly anyOf?: readonly JsonSchema[];
}

function kindOf(name: string): (typeof kinds)[number] {
  return /schemas\/(.*)\.json$/m.exec(readFileSync(join(root, name), 'utf8'))?.[1] as (typeof kinds)[number];
}

function printed(kind: (typeof kinds)[number]): string {
  let text = '';
  const { write } = process.stdout;
  process.stdout.write = (part: unknown) => {
    text += String(part);
    return true;
  };
  try {
    runSchema({ kind });
  } finally {
    process.stdout.write = write;
  }
  return text;
}

describe('headgate schema', () => {
  it.each(kinds)('prints the schema of %s, with a sentence for every key at the top', (kind) => {
    expect(parseCommand(['schema', kind])).toEqual({ name: 'schema', kind });
    const { anyOf: [schema] = [], properties = schema?.properties ?? {} } = JSON.parse(printed(kind)) as JsonSchema;
    const silent = Object.entries(properties).filter(([, { description = '' }]) => !/^\S.*\.$/.test(description));
    expect(silent).toEqual([]);
  });

  it('knows the parameters of every type of plugin', () => {
    const text = printed('endpoint-picker');
    expect(text).toContain('"const": "concurrency-detector"');
    expect(text).toContain('"maxConcurrency"');
  });

  it('takes one of the kinds', () => {
    expect(parseCommand(['schema', 'gatway'])).toMatchObject({ name: 'wrong' });
    expect(parseCommand(['schema'])).toMatchObject({ name: 'wrong' });
  });

  it.each(examples)('is named in the first line of %s', (name) => {
    const [line = ''] = readFileSync(join(root, name), 'utf8').split('\n');
    const file =
      /^# yaml-language-server: \$schema=((?:\.\.\/)+)dist\/schemas\/(?:gateway|scenario|endpoint-picker)\.json$/.exec(
        line,
      );
    expect(file?.[1]).toBe('../'.repeat(name.split('/').length - 1));
  });
});

if (!isInstalled) console.warn('NOT RUN: yaml-language-server is not installed, so no editor has read the schemas');

describe.skipIf(!isInstalled)('an editor', () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-schemas-'));
  let editor: Editor;

  beforeAll(async () => {
    for (const kind of kinds) writeFileSync(join(folder, `${kind}.json`), printed(kind));
    editor = await Editor.start();
  }, 60_000);

  afterAll(() => {
    editor.end();
    rmSync(folder, { recursive: true });
  });

  const withSchema = (kind: string, text: string): string =>
    `# yaml-language-server: $schema=${pathToFileURL(join(folder, `${kind}.json`)).href}\n${text.replace(/^# yaml-language-server.*\n/, '')}`;

  it.each(examples)('finds nothing wrong with %s', async (name) => {
    const text = readFileSync(join(root, name), 'utf8');
    expect(await editor.problems(withSchema(kindOf(name), text))).toEqual([]);
  });

  it('finds what is wrong', async () => {
    const wrong = 'listen: { port: 99999 }\nupstreams: []\ntimeout: { idle: 5s }\n';
    const found = await editor.problems(withSchema('gateway', wrong));
    expect(found).toEqual([expect.stringContaining('65535'), expect.stringContaining('timeout')]);
  });

  it('completes keys and words, and says what they are', async () => {
    const text = withSchema('gateway', 'listen: { port: 0 }\nupstreams: []\ntimeouts:\n  fir\n');
    const keys = await editor.completions(text, { line: 4, character: 5 });
    expect(keys.map(({ label }) => label)).toEqual(
      expect.arrayContaining(['firstToken', 'firstTokenByModel', 'firstByte']),
    );
    const [byte] = keys.filter(({ label }) => label === 'firstByte');
    expect(JSON.stringify(byte)).toContain('From the request to the head of the answer.');
    const plugin = withSchema(
      'endpoint-picker',
      'plugins:\n  - type: concurrency-detector\n    parameters:\n      max\n',
    );
    const parameters = await editor.completions(plugin, { line: 4, character: 9 });
    expect(parameters.map(({ label }) => label)).toContain('maxConcurrency');
  });
});

interface Completion {
  readonly label: string;
}

type Message = { id?: number; method?: string; params?: Record<string, unknown>; result?: unknown };

/** A language server, spoken to as editors do: JSON-RPC on its pipes. */
class Editor {
  private readonly process: ChildProcess;
  private readonly waiting = new Map<number | string, (message: Message) => void>();
  private received = Buffer.alloc(0);
  private count = 0;

  private constructor() {
    this.process = spawn(process.execPath, [server, '--stdio'], { stdio: ['pipe', 'pipe', 'ignore'] });
    this.process.stdout!.on('data', (part: Buffer) => this.read(part));
  }

  static async start(): Promise<Editor> {
    const editor = new Editor();
    await editor.ask('initialize', { processId: process.pid, rootUri: null, capabilities: {} });
    editor.tell('initialized', {});
    const yaml = { validate: true, completion: true, schemaStore: { enable: false } };
    editor.tell('workspace/didChangeConfiguration', { settings: { yaml } });
    return editor;
  }

  end(): void {
    this.process.kill();
  }

  async problems(text: string): Promise<string[]> {
    const uri = this.nextUri();
    const told = new Promise<Message>((resolve) => this.waiting.set(uri, resolve));
    this.open(uri, text);
    const { diagnostics } = (await told).params as { diagnostics: { message: string }[] };
    return diagnostics.map(({ message }) => message);
  }

  async completions(text: string, position: { line: number; character: number }): Promise<Completion[]> {
    const uri = this.nextUri();
    this.open(uri, text);
    const result = await this.ask('textDocument/completion', { textDocument: { uri }, position });
    return (result as { items: Completion[] }).items;
  }

  private open(uri: string, text: string): void {
    this.tell('textDocument/didOpen', { textDocument: { uri, languageId: 'yaml', version: 1, text } });
  }

  private nextUri(): string {
    this.count += 1;
    return `file:///edited-${this.count}.yaml`;
  }

  private ask(method: string, params: object): Promise<unknown> {
    this.count += 1;
    const id = this.count;
    const answer = new Promise<Message>((resolve) => this.waiting.set(id, resolve));
    this.send({ id, method, params });
    return answer.then(({ result }) => result);
  }

  private tell(method: string, params: object): void {
    this.send({ method, params });
  }

  private send(message: object): void {
    const text = JSON.stringify({ jsonrpc: '2.0', ...message });
    this.process.stdin!.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  }

  private read(part: Buffer): void {
    this.received = Buffer.concat([this.received, part]);
    for (;;) {
      const head = this.received.indexOf('\r\n\r\n');
      const length = Number(/Content-Length: (\d+)/i.exec(this.received.subarray(0, head).toString())?.[1]);
      if (head < 0 || this.received.length < head + 4 + length) return;
      const message = JSON.parse(this.received.subarray(head + 4, head + 4 + length).toString()) as Message;
      this.received = this.received.subarray(head + 4 + length);
      this.heard(message);
    }
  }

  private heard(message: Message): void {
    // The server asks for its settings, and registers what it can do: there is nothing to say.
    if (message.id !== undefined && message.method !== undefined) this.send({ id: message.id, result: null });
    else if (message.id !== undefined) this.waiting.get(message.id)?.(message);
    else if (message.method === 'textDocument/publishDiagnostics')
      this.waiting.get(String(message.params?.uri))?.(message);
  }
}
