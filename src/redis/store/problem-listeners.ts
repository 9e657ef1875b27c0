/** Listeners for problems. They hear each kind once, until the store has answered again. */
import type { LinkListener } from './store-link.js';
import type { StoreProblem } from './store-problem.js';

export class ProblemListeners implements LinkListener {
  private readonly listeners = new Set<(problem: StoreProblem) => void>();
  private toldCode: string | undefined = undefined;

  add(listener: (problem: StoreProblem) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  breaker(isOpen: boolean): void {
    if (!isOpen) this.toldCode = undefined;
  }

  missed(problem: StoreProblem): void {
    if (problem.code === this.toldCode) return;
    this.toldCode = problem.code;
    for (const listener of [...this.listeners]) {
      try {
        listener(problem);
      } catch {
        // A listener's fault is not the store's.
      }
    }
  }
}
