/** Files, and standard input as `-`. */
import { readFileSync } from 'node:fs';

/** @throws what reading throws */
export function readSource(file: string): string {
  return readFileSync(file === '-' ? 0 : file, 'utf8');
}
