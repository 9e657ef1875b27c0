// @ts-check
// Who lives and who dies: the parent starts its processes here, and none outlives it.
// Three nets: an orderly stop, SIGKILL when the parent exits for whatever reason, and each child's own end when its IPC
// channel closes.

import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** @import { ChildProcess } from 'node:child_process' */
/** @import { Server } from 'node:http' */

/** @typedef {{ url: string, child: ChildProcess }} Running */

/** In a child: end with the parent. Ctrl-C reaches the whole process group; what it means is the parent's decision. */
export function obeyParent() {
  process.on('disconnect', () => process.exit());
  process.on('SIGINT', () => {});
}

/** In a child: tell the parent where this server listens. @param {Server} server */
export function announce(server) {
  const address = server.address();
  if (!address || typeof address === 'string') return;
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  process.send?.({ type: 'listening', url: `http://${host}:${address.port}` });
}

/**
 * In a child: answer what the parent asks by `Processes.ask`. @param {string} question @param {() => unknown} answer
 */
export function answerParent(question, answer) {
  process.on('message', (/** @type {{ type: string }} */ { type }) => {
    if (type === question) process.send?.({ type, answer: answer() });
  });
}

export class Processes {
  /** @type {Set<ChildProcess>} */
  #children = new Set();
  /** @type {(reason: Error) => void} */
  #fail = () => {};
  /** Rejects when a child ends that nobody stopped. @type {Promise<never>} */
  failed = new Promise((_, reject) => {
    this.#fail = reject;
  });

  constructor() {
    this.failed.catch(() => {});
    process.on('exit', () => {
      for (const child of this.#children) child.kill('SIGKILL');
    });
    for (const [signal, code] of /** @type {const} */ ([
      ['SIGINT', 130],
      ['SIGTERM', 143],
      ['SIGHUP', 129],
    ])) {
      process.on(signal, () => process.exit(code));
    }
  }

  /**
   * @param {string} file Beside this one.
   * @param {readonly string[]} args
   * @param {(message: any, child: ChildProcess) => void} [onMessage]
   */
  start(file, args, onMessage = () => {}) {
    const child = fork(fileURLToPath(new URL(file, import.meta.url)), args, { execArgv: [] });
    this.#children.add(child);
    child.on('message', (message) => onMessage(message, child));
    child.on('error', this.#fail);
    child.on('exit', (code, signal) => {
      if (this.#children.delete(child)) this.#fail(new Error(`${file} ended unexpectedly (${signal ?? code})`));
    });
    return child;
  }

  /**
   * Starts a server and waits until it listens.
   * @param {string} file
   * @param {readonly string[]} args
   * @returns {Promise<Running>}
   */
  startServer(file, args) {
    /** @type {Promise<Running>} */
    const listening = new Promise((resolve) => {
      this.start(file, args, (message, child) => {
        if (message.type === 'listening') resolve({ url: message.url, child });
      });
    });
    return Promise.race([listening, this.failed]);
  }

  /**
   * Asks a child, which replies by `answerParent`. @param {Running} running @param {string} question @returns
   * {Promise<any>}
   */
  ask({ child }, question) {
    /** @type {Promise<unknown>} */
    const answered = new Promise((resolve) => {
      child.on('message', function listen(/** @type {any} */ { type, answer }) {
        if (type !== question) return;
        child.off('message', listen);
        resolve(answer);
      });
    });
    child.send({ type: question });
    return Promise.race([answered, this.failed]);
  }

  /** Ends all children, and waits until they are gone. */
  async stopAll() {
    const children = [...this.#children];
    this.#children.clear();
    await Promise.all(
      children.map((child) => {
        const gone = new Promise((resolve) => child.once('exit', resolve));
        child.kill('SIGKILL');
        return gone;
      }),
    );
  }
}
