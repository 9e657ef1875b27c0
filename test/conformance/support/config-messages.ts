/**
 * The reference's messages about wrong configuration → the field of the file that our message names in their place. Our
 * messages are another sentence: path, what was expected, what came.
 */

type PathOf = (match: RegExpExecArray, flowControl: object) => string;

const fieldOf: Readonly<Record<string, string>> = { MaxBytes: 'maxBytes', MaxRequests: 'maxRequests' };

const paths: readonly (readonly [message: RegExp, path: PathOf])[] = [
  [/^global (MaxBytes|MaxRequests) must be non-negative/, ([, name = '']) => `flowControl.${fieldOf[name]}`],
  [
    /^default negative priority band (MaxBytes|MaxRequests)/,
    ([, name = '']) => `flowControl.defaultNegativePriorityBand.${fieldOf[name]}`,
  ],
  [
    /^default priority band (MaxBytes|MaxRequests)/,
    ([, name = '']) => `flowControl.defaultPriorityBand.${fieldOf[name]}`,
  ],
  [
    /^priority band (-?\d+) (MaxBytes|MaxRequests)/,
    ([, priority, name = ''], flowControl) =>
      `flowControl.priorityBands[${indexOf(flowControl, Number(priority))}].${fieldOf[name]}`,
  ],
  [
    /^duplicate priority level (-?\d+)/,
    ([, priority], flowControl) => `flowControl.priorityBands[${indexOf(flowControl, Number(priority), 1)}].priority`,
  ],
  [/DefaultRequestTTL cannot be negative/, () => 'flowControl.defaultRequestTTL'],
  [/NoEndpointRequestTTL cannot be negative/, () => 'flowControl.noEndpointRequestTTL'],
  [/^saturation detector references an undefined plugin/, () => 'flowControl.saturationDetector.pluginRef'],
  // Unknown, or of another kind: ours says which at the field that refers to it.
  [
    /^plugin "([^"]+)" (?:not found|does not implement)/,
    ([, name = ''], flowControl) => `flowControl${pathTo(name, flowControl)}`,
  ],
  [/does not implement/, () => 'Ref'],
];

/**
 * The end of the path at which headgate reports what the message is about; undefined when the table does not know the
 * message.
 */
export function pathOfMessage(message: string, flowControl: object): string | undefined {
  for (const [pattern, path] of paths) {
    const match = pattern.exec(message);
    if (match !== null) return path(match, flowControl);
  }
  return undefined;
}

/** The path to the field that holds the name, below `value`; empty when none does. */
function pathTo(name: string, value: object): string {
  for (const [key, child] of Object.entries(value)) {
    const step = Array.isArray(value) ? `[${key}]` : `.${key}`;
    if (child === name) return step;
    const below = typeof child === 'object' && child !== null ? pathTo(name, child) : '';
    if (below !== '') return `${step}${below}`;
  }
  return '';
}

/** Where the band of a priority stands in the file; `occurrence` counts from 0. */
function indexOf(flowControl: object, priority: number, occurrence = 0): number {
  const bands =
    'priorityBands' in flowControl && Array.isArray(flowControl.priorityBands) ? flowControl.priorityBands : [];
  const found = bands.flatMap((band: { priority?: unknown }, index) => (band.priority === priority ? [index] : []));
  return found[occurrence] ?? -1;
}
