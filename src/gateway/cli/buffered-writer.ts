/**
 * Writes to standard error in larger pieces, because a write is a system call, which blocks the event loop, and a busy
 * gateway writes a line for every request.
 *
 * Invariant: lines keep their order; what is held is written at the latest after `everyMs`, and when the process ends.
 */

const everyMs = 50;
const mostCharacters = 65_536;

export interface BufferedWriter {
  write(line: string): void;
  flush(): void;
}

export function bufferedWriter(write: (text: string) => void): BufferedWriter {
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
      held += line;
      if (held.length >= mostCharacters) flush();
      else timer ??= setTimeout(flush, everyMs).unref();
    },
    flush,
  };
}
