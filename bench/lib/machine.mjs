// Where and when figures were taken.
import { arch, availableParallelism, cpus, platform, totalmem } from 'node:os';

export function describeMachine() {
  const model = cpus()[0]?.model.trim() ?? 'unknown processor';
  const memoryGiB = Math.round(totalmem() / 2 ** 30);
  return `${availableParallelism()} cores (${model}), ${memoryGiB} GiB, ${platform()} ${arch()}, Node ${process.versions.node}`;
}

export const today = () => new Date().toISOString().slice(0, 10);
