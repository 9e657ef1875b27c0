/** Listeners for problems. They hear each kind once, until the store has answered again. */
import type { LinkListener } from './store-link.js';
import type { EngineProblem } from './store-problem.js';

export class ProblemListeners implements LinkListener {
  private readonly listeners = new Set<(problem: EngineProblem) => void>();
  private toldCode: string | undefined = undefined;

  add(listener: (problem: EngineProblem) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  breaker(isOpen: boolean): void {
    if (!isOpen) this.toldCode = undefined;
  }

  missed(problem: EngineProblem): void {
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
