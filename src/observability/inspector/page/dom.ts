/** Page script: elements, numbers in words, and lists that keep their elements from frame to frame. */
export const dom: string = /* js */ `
const byId = (id) => document.getElementById(id);
const svgSpace = 'http://www.w3.org/2000/svg';

function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

function makeSvg(tag, attributes) {
  const element = document.createElementNS(svgSpace, tag);
  for (const name in attributes) element.setAttribute(name, attributes[name]);
  return element;
}

/** Writes only what changed: an unchanged page costs no layout. */
function write(element, text) {
  const next = String(text);
  if (element.textContent !== next) element.textContent = next;
}
function mark(element, className, isOn) {
  if (element.classList.contains(className) !== isOn) element.classList.toggle(className, isOn);
}
function set(element, property, value) {
  if (element.style.getPropertyValue(property) !== String(value)) element.style.setProperty(property, value);
}
function tell(element, attribute, value) {
  if (element.getAttribute(attribute) !== String(value)) element.setAttribute(attribute, value);
}

/** One element for each item, found again by its key, in the order of the items. */
function list(parent, items, keyOf, create, update) {
  const known = parent.known || (parent.known = new Map());
  const kept = new Set();
  let place = parent.firstElementChild;
  items.forEach((item, index) => {
    let key = keyOf(item, index);
    while (kept.has(key)) key += ' again';
    kept.add(key);
    let element = known.get(key);
    if (!element) known.set(key, (element = create(item)));
    if (element === place) place = place.nextElementSibling;
    else parent.insertBefore(element, place);
    update(element, item, index);
  });
  for (const [key, element] of known) {
    if (kept.has(key)) continue;
    element.remove();
    known.delete(key);
  }
}

const whole = new Intl.NumberFormat('en');
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
function count(value) {
  return value < 100000 ? whole.format(value) : compact.format(value);
}
function rate(value) {
  return value < 10 ? value.toFixed(1) : count(Math.round(value));
}
function time(ms) {
  if (ms === null) return '–';
  if (ms < 100) return Math.round(ms) + ' ms';
  if (ms < 60000) return (ms / 1000).toFixed(1) + ' s';
  if (ms < 3600000) return Math.floor(ms / 60000) + ' min ' + Math.round((ms % 60000) / 1000) + ' s';
  return compact.format(ms / 3600000) + ' h';
}
function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return (unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)) + ' ' + units[unit];
}
function share(value) {
  return Math.round(value * 100) + ' %';
}

/** The same colour for the same flow wherever it stands, and different ones for those that are seen together. */
const tints = new Map();
function tintOf(name) {
  if (!tints.has(name)) {
    if (tints.size >= 4096) tints.clear();
    tints.set(name, 't' + (tints.size % 8));
  }
  return tints.get(name);
}
`;
