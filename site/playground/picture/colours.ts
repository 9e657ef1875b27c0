/** Colours from the page's style, so that the picture follows the theme. */
export interface Colours {
  readonly text: string;
  readonly faint: string;
  readonly line: string;
  readonly ground: string;
  readonly open: string;
  readonly closed: string;
  /** By tenant. */
  readonly tenants: readonly string[];
}

export function coloursOf(element: Element): Colours {
  const style = getComputedStyle(element);
  const read = (name: string): string => style.getPropertyValue(`--pg-${name}`).trim();
  return {
    text: read('text'),
    faint: read('faint'),
    line: read('line'),
    ground: read('ground'),
    open: read('open'),
    closed: read('closed'),
    tenants: [0, 1, 2, 3, 4].map((tenant) => read(`tenant-${tenant}`)),
  };
}
