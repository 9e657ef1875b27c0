/** Decides by the address of the connection whether its sender is believed. */
import { BlockList, isIP } from 'node:net';
import * as s from '../../base/schema/schema.js';
import { FlowConfigError } from '../../index.js';

/** A request with an address: one of node:http, of Express and of Fastify's `req.raw`. */
interface Connected {
  readonly socket: { readonly remoteAddress?: string | undefined };
}

/**
 * For `trust`: whether the connection comes from one of these addresses or ranges (CIDR), IPv4 or IPv6;
 * `::ffff:10.0.0.5` counts as `10.0.0.5`. Zones of link-local addresses (`fe80::1%eth0`) are not looked at, so no range
 * may name one. It looks at the socket, never at headers, which clients write. Cost: O(ranges) for each request.
 * @throws FlowConfigError for what is no address or range
 * @example flowControl(flow, { trust: fromAddresses(['10.0.0.0/8', 'fd00::/8', '127.0.0.1']) });
 */
export function fromAddresses(ranges: readonly string[]): (request: Connected) => boolean {
  s.parse(s.list(s.anything(), 'a list of addresses and ranges'), ranges, 'fromAddresses');
  const known = new BlockList();
  for (const [index, range] of ranges.entries()) add(known, range, index);
  return ({ socket }) => {
    const address = socket.remoteAddress;
    const family = address === undefined ? 0 : isIP(address);
    return address !== undefined && family !== 0 && known.check(address, family === 4 ? 'ipv4' : 'ipv6');
  };
}

function add(list: BlockList, range: string, index: number): void {
  const [address = '', bits, ...more] = typeof range === 'string' ? range.split('/') : [];
  // `isIP` takes an address with a zone, and the list would forget the zone.
  const family = address.includes('%') ? 0 : isIP(address);
  const longest = family === 4 ? 32 : 128;
  const prefix = bits === undefined ? longest : /^\d{1,3}$/.test(bits) ? Number(bits) : NaN;
  if (family === 0 || more.length > 0 || !(prefix <= longest)) {
    const expected = 'an IPv4 or IPv6 address, or a range such as "10.0.0.0/8", without a zone';
    const got = JSON.stringify(range) ?? String(range);
    throw new FlowConfigError('fromAddresses', [{ path: `[${index}]`, expected, got }]);
  }
  list.addSubnet(address, prefix, family === 4 ? 'ipv4' : 'ipv6');
}
