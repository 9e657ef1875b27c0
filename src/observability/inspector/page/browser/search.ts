/** Why one request waits, by its ID. */
import { byId, write } from './dom.js';
import { time } from './figures.js';

interface Found {
  readonly isWaiting: boolean;
  readonly priority?: number;
  readonly waitedMs?: number;
  readonly why?: string;
}

async function find(id: string): Promise<string> {
  const answer = await fetch(`?view=find&id=${encodeURIComponent(id)}`);
  if (!answer.ok) return `The search failed: ${answer.status}.`;
  const found = (await answer.json()) as Found;
  if (!found.isWaiting) return 'No request of that ID waits: it runs, has ended, or never came here.';
  return `Priority ${found.priority}, has waited ${time(found.waitedMs ?? 0)}: ${found.why}`;
}

export function listenForSearches(): void {
  byId('search').addEventListener('submit', (event) => {
    event.preventDefault();
    const id = (byId('request-id') as HTMLInputElement).value.trim();
    const result = byId('found');
    if (id === '') return;
    void find(id)
      .catch(() => 'The search failed: no connection.')
      .then((text) => {
        result.hidden = false;
        write(result, text);
      });
  });
}
