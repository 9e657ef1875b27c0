/** Where everything stands in the picture, in CSS pixels: queues on the left, the gate, servers on the right. */
import { quotasOf, type Settings } from '../settings.ts';

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  /** Highest priority first. */
  readonly lanes: readonly (Box & {
    readonly priority: number;
    readonly rows: readonly (Box & { readonly tenant: number })[];
  })[];
  readonly gate: Box;
  /** A column for each quota, at the gate's right. */
  readonly quotas: readonly Box[];
  readonly servers: readonly Box[];
}

const headingPx = 22;
const gapPx = 8;
const quotaPx = 16;

export function layoutOf(settings: Settings, width: number): Layout {
  const { tenants, servers } = settings;
  const rowPx = width < 600 ? 44 : 56;
  const isNarrow = width < 600;
  const gateWidth = isNarrow ? 18 : 26;
  const gateX = Math.round(width * (isNarrow ? 0.56 : 0.58));
  const priorities = [...new Set(tenants.map(({ priority }) => priority))].sort((a, b) => b - a);
  const lanes: Layout['lanes'][number][] = [];
  let y = headingPx;
  for (const priority of priorities) {
    const members = tenants.flatMap((tenant, index) => (tenant.priority === priority ? [index] : []));
    const height = headingPx + members.length * rowPx;
    const rows = members.map((tenant, index) => ({
      tenant,
      x: 0,
      y: y + headingPx + index * rowPx,
      width: gateX - gapPx,
      height: rowPx - gapPx,
    }));
    lanes.push({ priority, rows, x: 0, y, width: gateX - gapPx, height });
    y += height + gapPx;
  }
  const height = Math.max(y, headingPx + servers * 56);
  const gate = { x: gateX, y: headingPx, width: gateWidth, height: height - headingPx - gapPx };
  const quotas = quotasOf(settings).map((_, index) => ({
    ...gate,
    x: gateX + gateWidth + 4 + index * (quotaPx + 4),
    width: quotaPx,
  }));
  const x = gateX + gateWidth + quotas.length * (quotaPx + 4) + (isNarrow ? 12 : 28);
  const each = (height - headingPx) / servers;
  const boxes = Array.from({ length: servers }, (_, index) => ({
    x,
    y: headingPx + index * each,
    width: width - x,
    height: each - gapPx,
  }));
  return { width, height, lanes, gate, quotas, servers: boxes };
}

/** The largest squares, at most `most` wide, of which `count` fit into the box; at least 2 pixels. */
export function cellSize(
  { width, height }: { readonly width: number; readonly height: number },
  count: number,
  most: number,
): number {
  for (let size = most; size > 2; size--)
    if (Math.floor(width / size) * Math.floor(height / size) >= count) return size;
  return 2;
}
