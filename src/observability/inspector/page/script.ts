/** The page's script, in the order in which its parts need each other. It runs in browsers: no module, no library, no `innerHTML`. */
import { charts } from './charts.js';
import { dom } from './dom.js';
import { lanes } from './lanes.js';
import { stream } from './stream.js';

export const script: string = `'use strict';(() => {${dom}${lanes}${charts}${stream}})();`;
