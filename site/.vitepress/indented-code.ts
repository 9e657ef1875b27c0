/** Indented code is shown like fenced code, which scrolls where it is wider than the screen. */
import type { Markdown } from './links.ts';

export function indentedCodeIsFenced(markdown: Markdown): void {
  markdown.core.ruler.push('indented-code', ({ tokens }) => {
    for (const token of tokens) {
      if (token.type !== 'code_block') continue;
      token.type = 'fence';
      token.tag = 'code';
      token.info = 'text';
      token.markup = '```';
    }
  });
}
