/** Counts what became of the vectors. */
import type { Vector } from './vectors.js';

/**
 * `stale`: listed as a deviation, and passes. `unplayable`: no runner knows what it asks, so that nobody knows what
 * headgate does.
 */
export type Verdict = 'passed' | 'deviation' | 'stale' | 'failed' | 'unplayable';

const verdicts: readonly Verdict[] = ['passed', 'deviation', 'stale', 'failed', 'unplayable'];

interface Note {
  readonly file: string;
  readonly vector: Vector;
  verdict: Verdict;
}

export class Tally {
  private readonly noted: Note[] = [];

  /** A vector has failed unless the returned function says otherwise. */
  begin(file: string, vector: Vector): (verdict: Verdict) => void {
    const note: Note = { file, vector, verdict: 'failed' };
    this.noted.push(note);
    return (verdict) => {
      note.verdict = verdict;
    };
  }

  staleIds(): string[] {
    return this.noted.filter(({ verdict }) => verdict === 'stale').map(({ vector }) => vector.id);
  }

  /** A line for each file, and what was left out by kind. */
  describe(): string {
    const files = [...new Set(this.noted.map(({ file }) => file))];
    const lines = [
      row('file', verdicts),
      ...files.map((file) =>
        row(
          file,
          verdicts.map((verdict) => this.count(verdict, file)),
        ),
      ),
    ];
    return [
      ...lines,
      ...this.leftOut('deviation'),
      ...this.leftOut('stale'),
      ...this.leftOut('failed'),
      ...this.leftOut('unplayable'),
    ].join('\n');
  }

  private count(verdict: Verdict, file: string): number {
    return this.noted.filter((each) => each.verdict === verdict && each.file === file).length;
  }

  private leftOut(verdict: Verdict): string[] {
    const counts = new Map<string, number>();
    for (const { vector } of this.noted.filter((each) => each.verdict === verdict)) {
      counts.set(vector.kind, (counts.get(vector.kind) ?? 0) + 1);
    }
    if (counts.size === 0) return [];
    return [`${verdict}: ${[...counts].map(([kind, count]) => `${kind} ${count}`).join(', ')}`];
  }
}

function row(name: string, cells: readonly (string | number)[]): string {
  return [name.padEnd(20), ...cells.map((cell) => String(cell).padStart(11))].join('');
}
