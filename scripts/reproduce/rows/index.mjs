// Every published result, in the order of the page.
import { row as blis } from './blis-saturation.mjs';
import { row as s1 } from './s1-real-trace.mjs';
import { row as s2 } from './s2-weighted.mjs';
import { row as s3 } from './s3-overload.mjs';
import { row as s4 } from './s4-seats.mjs';
import { row as s5 } from './s5-adaptive-limit.mjs';
import { row as s6 } from './s6-late-work.mjs';
import { row as s7 } from './s7-deadlines.mjs';
import { row as s8 } from './s8-batch-beside-chat.mjs';
import { row as s9 } from './s9-long-prompts.mjs';

export const rows = [s1, s2, s3, s4, s5, s6, s7, s8, s9, blis];
