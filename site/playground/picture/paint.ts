/** One frame: what waits in each flow, the gate with its ceilings, and what runs on each server. */
import type { Look, Run, Server } from '../run.ts';
import type { Colours } from './colours.ts';
import { type Box, cellSize, type Layout } from './layout.ts';

const font = '12px system-ui, sans-serif';
const boldFont = '600 12px system-ui, sans-serif';
const labelPx = 74;

export function paint(context: CanvasRenderingContext2D, layout: Layout, colours: Colours, run: Run, look: Look): void {
  context.clearRect(0, 0, layout.width, layout.height);
  context.textBaseline = 'middle';
  heading(context, colours, 'waiting', 0);
  heading(context, colours, 'gate', layout.gate.x - 2);
  heading(context, colours, 'running', layout.servers[0]?.x ?? 0);
  paintLanes(context, layout, colours, run, look);
  paintGate(context, layout, colours, look);
  paintQuotas(context, layout, colours, look);
  for (const [index, server] of run.servers.entries()) {
    const box = layout.servers[index];
    if (box !== undefined) paintServer(context, box, colours, server, run);
  }
}

function heading(context: CanvasRenderingContext2D, { faint }: Colours, text: string, x: number): void {
  context.font = font;
  context.fillStyle = faint;
  context.textAlign = 'left';
  context.fillText(text, x, 9);
}

function paintLanes(
  context: CanvasRenderingContext2D,
  { lanes }: Layout,
  colours: Colours,
  run: Run,
  { flows }: Look,
): void {
  const room = { width: (lanes[0]?.width ?? 0) - labelPx, height: lanes[0]?.rows[0]?.height ?? 0 };
  // One size for all, so that lengths can be compared.
  const size = cellSize(room, Math.max(...flows), 12);
  for (const lane of lanes) {
    context.fillStyle = colours.ground;
    context.fillRect(lane.x, lane.y, lane.width, lane.height);
    context.font = font;
    context.fillStyle = colours.faint;
    context.fillText(`priority ${lane.priority}`, lane.x + 6, lane.y + 12);
    for (const row of lane.rows) {
      const waiting = flows[row.tenant] ?? 0;
      const colour = colours.tenants[row.tenant] ?? colours.text;
      context.font = boldFont;
      context.fillStyle = colour;
      context.fillText(run.settings.tenants[row.tenant]?.name ?? '', row.x + 6, row.y + 10, labelPx - 10);
      context.font = font;
      context.fillStyle = colours.text;
      context.fillText(String(waiting), row.x + 6, row.y + 28);
      context.fillStyle = colour;
      paintQueue(context, row, size, waiting);
    }
  }
}

/** From the gate backwards, column by column. */
function paintQueue(context: CanvasRenderingContext2D, row: Box, size: number, waiting: number): void {
  const perColumn = Math.max(1, Math.floor(row.height / size));
  const columns = Math.floor((row.width - labelPx) / size);
  const shown = Math.min(waiting, perColumn * columns);
  const edge = row.x + row.width - 4;
  const inner = size > 3 ? size - 1 : size;
  for (let index = 0; index < shown; index++) {
    const column = Math.floor(index / perColumn);
    context.fillRect(edge - (column + 1) * size, row.y + (index % perColumn) * size, inner, inner);
  }
}

/** A column that fills up with the pool; beside each lane it is shut while the lane's ceiling is reached. */
function paintGate(
  context: CanvasRenderingContext2D,
  { gate, lanes }: Layout,
  colours: Colours,
  { saturation, bands }: Look,
): void {
  const level = Math.min(1, saturation);
  context.fillStyle = colours.ground;
  context.fillRect(gate.x, gate.y, gate.width, gate.height);
  context.fillStyle = level >= 1 ? colours.closed : colours.open;
  context.fillRect(gate.x, gate.y + gate.height * (1 - level), gate.width, gate.height * level);
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.strokeRect(gate.x + 0.5, gate.y + 0.5, gate.width - 1, gate.height - 1);
  for (const { priority, ceiling } of bands) {
    const lane = lanes.find((each) => each.priority === priority);
    if (lane === undefined) continue;
    context.fillStyle = saturation >= ceiling ? colours.closed : colours.open;
    context.fillRect(gate.x - 6, lane.y, 4, lane.height);
    if (ceiling >= 1) continue;
    context.fillStyle = colours.text;
    context.fillRect(gate.x - 2, gate.y + gate.height * (1 - ceiling) - 1, gate.width + 4, 2);
  }
}

/**
 * Each fills up with what was taken of it lately; its name stands in it, from below. The one that holds requests back
 * has a rim.
 */
function paintQuotas(
  context: CanvasRenderingContext2D,
  layout: Layout,
  colours: Colours,
  { quotas, waiting, saturation }: Look,
): void {
  const most = Math.max(...quotas.map(({ taken }) => taken));
  for (const [index, { unit, taken }] of quotas.entries()) {
    const box = layout.quotas[index];
    if (box === undefined) continue;
    context.fillStyle = colours.ground;
    context.fillRect(box.x, box.y, box.width, box.height);
    context.fillStyle = colours.line;
    context.fillRect(box.x, box.y + box.height * (1 - taken), box.width, box.height * taken);
    context.strokeStyle = waiting > 0 && saturation < 1 && taken === most ? colours.closed : colours.line;
    context.lineWidth = 1;
    context.strokeRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1);
    context.save();
    context.translate(box.x + box.width / 2, box.y + box.height - 6);
    context.rotate(-Math.PI / 2);
    context.font = font;
    context.fillStyle = colours.text;
    context.fillText(`quota: ${unit}`, 0, 0);
    context.restore();
  }
}

function paintServer(
  context: CanvasRenderingContext2D,
  box: Box,
  colours: Colours,
  { id, isDown, isSlow, seats }: Server,
  run: Run,
): void {
  context.fillStyle = colours.ground;
  context.fillRect(box.x, box.y, box.width, box.height);
  context.font = font;
  context.fillStyle = isDown || isSlow ? colours.closed : colours.faint;
  context.fillText(isDown ? `${id}: down` : isSlow ? `${id}: slow` : id, box.x + 6, box.y + 10);
  const room = { width: box.width - 12, height: box.height - 24 };
  const count = Math.max(run.seats, seats.length);
  const size = cellSize(room, count, 26);
  const perRow = Math.max(1, Math.floor(room.width / size));
  for (let seat = 0; seat < count; seat++) {
    const x = box.x + 6 + (seat % perRow) * size;
    const y = box.y + 20 + Math.floor(seat / perRow) * size;
    const request = seats[seat];
    const inner = size - (size > 6 ? 3 : 1);
    context.fillStyle = colours.line;
    if (request === undefined) {
      if (!isDown) context.fillRect(x + inner / 2 - 1, y + inner / 2 - 1, 2, 2);
      continue;
    }
    // It fills with the answer; empty: no token is out yet.
    const done = Math.min(1, request.tokensOut / Math.max(1, request.outputTokens));
    const tenant = run.tenantIndex(request.key.fairnessId);
    context.strokeStyle = colours.tenants[tenant] ?? colours.text;
    context.strokeRect(x + 0.5, y + 0.5, inner - 1, inner - 1);
    context.fillStyle = colours.tenants[tenant] ?? colours.text;
    context.fillRect(x, y + inner * (1 - done), inner, inner * done);
  }
}
