// Addresses under which the console is reached, as far as its own settings tell: a ban of one keeps people out of it, or
// nodes from it.
import { type Cidr, contains, formatAddress, parseAddress } from '../../contract/scalars/cidr.ts';
import { Recent } from '../../models/db/recent.ts';
import { nodeChannelAddress } from '../../models/nodes/node-channel-setting.ts';
import { resolveChecked } from '../../proto/address-policy.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** Looked up anew after this time: a preview is asked for while one types. */
const KNOWN_MS = 30_000;
const LOOKUP_MS = 500;
const EVERYTHING = ['0.0.0.0/0', '::/0'];

export class ConsoleAddresses {
  readonly #runtime: Runtime;
  readonly #recent = new Recent<Cidr[]>(KNOWN_MS);

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Those in the range. A name that does not resolve within 500 ms has none. */
  async inside(range: Cidr): Promise<string[]> {
    const all = await this.#recent.get(() => this.#resolve());
    return all.filter((address) => contains(range, address)).map(formatAddress);
  }

  async #resolve(): Promise<Cidr[]> {
    const { env, pools } = this.#runtime;
    const { effectiveUrl } = await nodeChannelAddress(pools.api, env);
    const hosts = [new URL(env.publicUrl).hostname, new URL(effectiveUrl).hostname, ...env.nodeApiHostnames];
    const answers = await Promise.all(
      [...new Set(hosts)].map((host) => resolveChecked(host, EVERYTHING, LOOKUP_MS).catch(() => [])),
    );
    return [...new Set(answers.flat())].flatMap((text) => parseAddress(text) ?? []);
  }
}
