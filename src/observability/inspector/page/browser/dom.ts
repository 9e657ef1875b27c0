/** Elements, and lists that keep their elements from frame to frame. */
import { put } from '../../../../base/put.js';
import { count } from './figures.js';

export function byId(id: string): HTMLElement {
  return document.getElementById(id) as HTMLElement;
}

type Child = Node | string;

export function make(tag: string, className = '', ...children: readonly Child[]): HTMLElement {
  const element = document.createElement(tag);
  if (className !== '') element.className = className;
  element.append(...children);
  return element;
}

export function makeSvg(tag: string, attributes: Readonly<Record<string, string | number>>): SVGElement {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
}

/** A copy of what is in the template of that name. */
function copyOf(template: string): HTMLElement {
  const [element] = (byId(template) as HTMLTemplateElement).content.children;
  return element?.cloneNode(true) as HTMLElement;
}

/** The same for what has a colour: its swatch is tinted. */
export function tinted(template: string, tint: string): HTMLElement {
  const copy = copyOf(template);
  part(copy, 'swatch').classList.add(tint);
  return copy;
}

/** What an element has under that name, its `data-part`. */
export function part(whole: Element, name: string): HTMLElement {
  return whole.querySelector(`[data-part="${name}"]`) as HTMLElement;
}

/** Writes the texts of the parts of an element. */
export function fill(whole: Element, texts: Readonly<Record<string, string | number>>): void {
  for (const [name, text] of Object.entries(texts)) write(part(whole, name), text);
}

/** Shown while there is something to say. */
export function notice(element: HTMLElement, text: string): void {
  element.hidden = text === '';
  write(element, text);
}

/** Writes only what changed: an unchanged page costs no layout. */
export function write(element: Node | null | undefined, text: string | number): void {
  const next = String(text);
  if (element && element.textContent !== next) element.textContent = next;
}

export function mark(element: Element, className: string, isOn: boolean): void {
  if (element.classList.contains(className) !== isOn) element.classList.toggle(className, isOn);
}

export function set(element: HTMLElement, property: string, value: string | number): void {
  if (element.style.getPropertyValue(property) !== String(value)) element.style.setProperty(property, String(value));
}

export function tell(element: Element, attribute: string, value: string | number | boolean): void {
  if (element.getAttribute(attribute) !== String(value)) element.setAttribute(attribute, String(value));
}

const listed = new WeakMap<Element, Map<string, Element>>();

/** One element for each item, found again by its key, in the order of the items. */
export function list<T, E extends Element>(
  parent: Element,
  items: readonly T[],
  keyOf: (item: T, index: number) => string,
  create: (item: T) => E,
  update: (element: E, item: T) => void,
): void {
  const known = (listed.get(parent) ?? new Map<string, Element>()) as Map<string, E>;
  listed.set(parent, known);
  const kept = new Set<string>();
  let place = parent.firstElementChild;
  for (const [index, item] of items.entries()) {
    let key = keyOf(item, index);
    while (kept.has(key)) key += ' again';
    kept.add(key);
    const element = known.get(key) ?? put(known, key, create(item));
    if (element === place) place = place.nextElementSibling;
    else parent.insertBefore(element, place);
    update(element, item);
  }
  for (const [key, element] of known) {
    if (kept.has(key)) continue;
    element.remove();
    known.delete(key);
  }
}

/** The same, each made of the template of that name, in the element of an ID; `no-ID` is shown while there are none. */
export function rows<T>(
  parent: string | Element,
  items: readonly T[],
  keyOf: (item: T, index: number) => string,
  template: string,
  update: (row: HTMLElement, item: T) => void,
): void {
  list(typeof parent === 'string' ? byId(parent) : parent, items, keyOf, () => copyOf(template), update);
  const none = document.getElementById(`no-${parent}`);
  if (none !== null) none.hidden = items.length > 0;
}

const tintCount = 12;
const tints = new Map<string, number>();

/** Forgets the colours of flows that are not shown any more, so that those that are can have one each. */
export function keepTints(shown: readonly string[]): void {
  if (tints.size < 4 * tintCount) return;
  const kept = new Set(shown);
  for (const name of tints.keys()) if (!kept.has(name)) tints.delete(name);
}

/** The same colour for the same flow wherever it stands, and one that the fewest others have. */
export function tintOf(name: string): string {
  let tint = tints.get(name);
  if (tint === undefined) {
    const uses = new Array<number>(tintCount).fill(0);
    for (const used of tints.values()) uses[used] = (uses[used] ?? 0) + 1;
    tint = uses.indexOf(Math.min(...uses));
    tints.set(name, tint);
  }
  return `t${tint}`;
}

/** Says how many are not shown. */
export function more(id: string, number: number, noun: string): void {
  notice(byId(id), number === 0 ? '' : `… and ${count(number)} ${noun}${number === 1 ? '' : 's'} more`);
}

/** A list of terms with a figure each. */
export function terms<Name extends string>(
  id: string,
  rows: readonly (readonly [name: Name, figure: string])[],
  termOf: (name: Name) => readonly Child[] = (name) => [name],
): void {
  list(
    byId(id),
    rows,
    ([name]) => name,
    ([name]) => make('div', '', make('dt', '', ...termOf(name)), make('dd')),
    (row, [, figure]) => write(row.lastChild, figure),
  );
}
