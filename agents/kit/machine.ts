// Facts about this machine that a node reports about itself.
import { arch, hostname, networkInterfaces } from 'node:os';

const MAX_ADDRESSES = 64;

/** Addresses of all interfaces but loopback, without link-local ones, sorted, at most 64. */
export function interfaceAddresses(): string[] {
  const found = new Set<string>();
  for (const addresses of Object.values(networkInterfaces())) {
    for (const { address, internal } of addresses ?? []) {
      if (!internal && !/^fe[89ab]/i.test(address) && !address.startsWith('169.254.'))
        found.add(address.split('%')[0]!);
    }
  }
  return [...found].sort().slice(0, MAX_ADDRESSES);
}

/** Host name, operating system and architecture in the words of the node channel. */
export function machineInfo(): { hostname: string; os: string; arch: string } {
  return { hostname: hostname(), os: process.platform, arch: arch() === 'x64' ? 'amd64' : arch() };
}
