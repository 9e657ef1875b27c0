/** Files, and standard input as `-`. */
import { readFileSync } from 'node:fs';

/** @throws what reading throws */
export const readSource = (file: string): string => readFileSync(file === '-' ? 0 : file, 'utf8');
