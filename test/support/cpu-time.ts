/** CPU time of this process. What a busy machine does meanwhile is not in it, unlike in wall time. */

/** The CPU time, ms, that `work` takes. */
export function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  return msSince(before);
}

/** The most CPU time, ms, that one turn of the event loop takes until the returned function is called. */
export function mostCpuMsPerTurn(): () => number {
  let most = 0;
  let isOver = false;
  let before = process.cpuUsage();
  const look = (): void => {
    most = Math.max(most, msSince(before));
    before = process.cpuUsage();
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  return () => {
    isOver = true;
    return Math.max(most, msSince(before));
  };
}

function msSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
