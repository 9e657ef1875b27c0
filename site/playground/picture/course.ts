/** The course of the time to first token: a line for each tenant over the simulated time, on a logarithmic scale. */
import { stepMs } from '../first-tokens.ts';
import type { Run } from '../run.ts';
import { lengthS } from '../settings.ts';
import type { Colours } from './colours.ts';

const leastMs = 30;
const mostMs = 100_000;
const marks: readonly (readonly [number, string])[] = [
  [100, '0.1 s'],
  [1000, '1 s'],
  [10_000, '10 s'],
];
const labelPx = 36;
const axisPx = 16;

export function paintCourse(
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  colours: Colours,
  run: Run,
): void {
  const x = (atMs: number): number => labelPx + ((width - labelPx) * atMs) / (lengthS * 1000);
  const y = (ms: number): number => {
    const share = Math.log(Math.min(mostMs, Math.max(leastMs, ms)) / leastMs) / Math.log(mostMs / leastMs);
    return (height - axisPx) * (1 - share);
  };
  context.clearRect(0, 0, width, height);
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  context.fillStyle = colours.ground;
  for (const { at, for: faultS } of run.settings.faults)
    context.fillRect(x(at * 1000), 0, x(Math.min(faultS, lengthS - at) * 1000) - labelPx, height - axisPx);
  for (const [ms, label] of marks) {
    context.fillStyle = colours.faint;
    context.fillText(label, 0, y(ms));
    context.fillStyle = colours.line;
    context.fillRect(labelPx, y(ms), width - labelPx, 1);
  }
  context.fillStyle = colours.faint;
  for (let second = 0; second < lengthS; second += 30) context.fillText(`${second} s`, x(second * 1000), height - 6);
  for (const tenant of run.settings.tenants.keys()) {
    context.strokeStyle = colours.tenants[tenant] ?? colours.text;
    context.lineWidth = 2;
    context.beginPath();
    let isDrawing = false;
    for (const [step, ms] of run.firstTokens.courseOf(tenant).entries()) {
      if (ms === undefined) continue;
      if (isDrawing) context.lineTo(x((step + 0.5) * stepMs), y(ms));
      else context.moveTo(x((step + 0.5) * stepMs), y(ms));
      isDrawing = true;
    }
    context.stroke();
  }
  context.fillStyle = colours.text;
  context.fillRect(x(run.reachedMs), 0, 1, height - axisPx);
}
