/** Writes faults without a listener to the console. Invariant: what repeats is written once: it floods no log. */
import { textOf } from './foreign-values.js';

/** A remark on what was probably meant otherwise. */
export function warnOperator(message: string): void {
  console.warn(`headgate: ${message}`);
}

export class UnheardFaults {
  private readonly told = new Set<string>();

  /** `event` is the one whose listeners hear of every fault. */
  tell(kind: string, what: string, event: string, error: unknown): void {
    if (this.told.has(kind)) return;
    this.told.add(kind);
    const message = `headgate: ${what}. This is written once; ${event} tells of every time.`;
    try {
      console.error(message, error);
    } catch {
      console.error(message, textOf(error));
    }
  }
}
