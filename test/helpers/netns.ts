// Hosts of a test: network namespaces on one bridge, with real addresses. Needs root and iproute2.
import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';

export interface TestHost {
  name: string;
  ipv4: string;
  ipv6: string;
  /** The words that run a program on this host. */
  exec: readonly string[];
}

export interface TestNetwork {
  /** Address of the machine itself on the bridge: where console and origin listen. */
  gateway: { ipv4: string; ipv6: string };
  subnet: { ipv4: string; ipv6: string };
  hosts: ReadonlyMap<string, TestHost>;
  /** Cuts or restores the link of a host. */
  link(name: string, state: 'up' | 'down'): void;
  remove(): void;
}

const ip = (...words: string[]): string => execFileSync('ip', words, { encoding: 'utf8', timeout: 10_000 });

/** A bridge with one namespace per name; names of interfaces are unique per call, so that tests can run side by side. */
export function createNetwork(names: readonly string[]): TestNetwork {
  const tag = randomInt(0x1000, 0xffff).toString(16);
  const third = randomInt(1, 250);
  const bridge = `svcbr${tag}`;
  const v4 = (host: number) => `10.213.${third}.${host}`;
  const v6 = (host: number) => `fd00:213:${third.toString(16)}::${host.toString(16)}`;
  ip('link', 'add', bridge, 'type', 'bridge');
  ip('addr', 'add', `${v4(1)}/24`, 'dev', bridge);
  ip('-6', 'addr', 'add', `${v6(1)}/64`, 'dev', bridge, 'nodad');
  ip('link', 'set', bridge, 'up');
  const hosts = new Map<string, TestHost>();
  const namespaces: string[] = [];
  for (const [index, name] of names.entries()) {
    const namespace = `svc${tag}-${name}`;
    const outer = `sv${tag}${index}o`;
    const inner = `sv${tag}${index}i`;
    ip('netns', 'add', namespace);
    namespaces.push(namespace);
    ip('link', 'add', outer, 'type', 'veth', 'peer', 'name', inner);
    ip('link', 'set', outer, 'master', bridge, 'up');
    ip('link', 'set', inner, 'netns', namespace);
    const inside = (...words: string[]) => ip('-n', namespace, ...words);
    inside('link', 'set', 'lo', 'up');
    inside('link', 'set', inner, 'up');
    inside('addr', 'add', `${v4(index + 2)}/24`, 'dev', inner);
    inside('-6', 'addr', 'add', `${v6(index + 2)}/64`, 'dev', inner, 'nodad');
    inside('route', 'add', 'default', 'via', v4(1));
    hosts.set(name, { name, ipv4: v4(index + 2), ipv6: v6(index + 2), exec: ['ip', 'netns', 'exec', namespace] });
  }
  const outerOf = (name: string) => `sv${tag}${names.indexOf(name)}o`;
  return {
    gateway: { ipv4: v4(1), ipv6: v6(1) },
    subnet: { ipv4: `10.213.${third}.0/24`, ipv6: `fd00:213:${third.toString(16)}::/64` },
    hosts,
    link: (name, state) => {
      ip('link', 'set', outerOf(name), state);
    },
    remove: () => {
      for (const namespace of namespaces) ip('netns', 'del', namespace);
      ip('link', 'del', bridge);
    },
  };
}
