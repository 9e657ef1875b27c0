/** An AbortController whose signal counts the listeners that are on it. */
export class CountedSignal {
  readonly controller = new AbortController();
  readonly live = new Set<unknown>();

  constructor() {
    const { signal } = this;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (type: string, listener: Parameters<typeof add>[1]) => {
      this.live.add(listener);
      add(type, listener);
    };
    signal.removeEventListener = (type: string, listener: Parameters<typeof add>[1]) => {
      this.live.delete(listener);
      remove(type, listener);
    };
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  abort(): void {
    this.controller.abort();
  }
}
