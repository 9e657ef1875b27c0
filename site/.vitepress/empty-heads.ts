/** A table may have columns without a name. An empty heading would be read out as one; an empty cell is nothing. */
import type { Markdown } from './links.ts';

export function emptyHeadsAreCells(markdown: Markdown): void {
  markdown.core.ruler.push('empty-heads', ({ tokens }) => {
    for (const [index, token] of tokens.entries()) {
      const [inside, close] = [tokens[index + 1], tokens[index + 2]];
      if (token.type !== 'th_open' || inside?.content !== '' || close === undefined) continue;
      token.tag = 'td';
      close.tag = 'td';
    }
  });
}
