// A host of a test whose addresses look public, with a resolver of its own: the address policy of console and nodes refuses
// loopback and private networks, so what is asked on somebody's word has to live elsewhere. The addresses are those of one
// network namespace and lead nowhere outside of it.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createNetwork } from './netns.ts';

export interface PublicNetwork {
  /** The words that run a program on the host; it resolves names by the resolver. */
  exec: readonly string[];
  /** A private address of the host, by which this process reaches it. */
  inside: string;
  /** A private address of this process, by which the host reaches it. */
  outside: string;
  remove(): void;
}

/** Needs root and iproute2, as createNetwork does. */
export function createPublicNetwork(addresses: readonly string[], resolver: string): PublicNetwork {
  const network = createNetwork(['public']);
  const { exec, ipv4: inside } = network.hosts.get('public')!;
  const folder = join('/etc/netns', exec.at(-1)!);
  const remove = () => {
    network.remove();
    rmSync(folder, { recursive: true, force: true });
  };
  const ip = (...words: string[]): string =>
    execFileSync(exec[0]!, [...exec.slice(1), 'ip', ...words], { encoding: 'utf8', timeout: 10_000 });
  try {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'resolv.conf'), `nameserver ${resolver}\n`);
    ip('route', 'del', 'default');
    const [link] = JSON.parse(ip('-j', 'route', 'get', network.gateway.ipv4)) as [{ dev: string }];
    for (const address of addresses) ip('addr', 'add', `${address}/32`, 'dev', link.dev);
  } catch (error) {
    remove();
    throw error;
  }
  return { exec, inside, outside: network.gateway.ipv4, remove };
}
