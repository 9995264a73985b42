// The certificate of the node channel: issued at every start, again when the names change or a third of its life is
// left.
import { hostname } from 'node:os';
import { type CertificateAuthority, SERVER_DAYS, type ServerCertificate } from '../../mixins/certificate-authority.ts';
import { type NodeChannelAddress, nodeChannelAddress } from '../../models/nodes/node-channel-setting.ts';
import type { Runtime } from '../../runtime/runtime.ts';

const RENEW_MS = (SERVER_DAYS * 86_400_000) / 3;
const DNS_NAME = /^[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?$/i;

export class ChannelCertificate {
  readonly #runtime: Runtime;
  readonly #authority: CertificateAuthority;
  #names = '';
  #issued: ServerCertificate | null = null;
  #address: NodeChannelAddress | null = null;

  constructor(runtime: Runtime, authority: CertificateAuthority) {
    this.#runtime = runtime;
    this.#authority = authority;
  }

  /** What the listener presents: leaf and authority, so that nodes find the one they pinned. */
  get context(): { key: string; cert: string } {
    const { keyPem, certificatePem } = this.#issued!;
    return { key: keyPem, cert: `${certificatePem}\n${this.#authority.certificatePem}` };
  }

  /** Host names and addresses under which nodes reach this console. */
  get hosts(): string[] {
    const hosts = this.#address ? [hostOf(this.#address.effectiveUrl), ...this.#address.savedHosts.map(bare)] : [];
    return [...new Set([...hosts, ...this.#runtime.env.nodeApiHostnames.map(bare)])];
  }

  /** Issues where needed; answers whether it did. */
  async refresh(now: Date): Promise<boolean> {
    this.#address = await nodeChannelAddress(this.#runtime.pools.api, this.#runtime.env);
    const names = certificateNames(this.hosts, hostname());
    const key = names.join();
    const due = !this.#issued || this.#issued.notAfter.getTime() - now.getTime() < RENEW_MS;
    if (!due && key === this.#names) return false;
    this.#issued = await this.#authority.issueServer(names, now);
    this.#names = key;
    return true;
  }
}

/** Names of the certificate: how nodes reach the console, and always this machine. */
export function certificateNames(hosts: readonly string[], ownName: string): string[] {
  const usable = hosts.filter((host) => host.includes(':') || DNS_NAME.test(host));
  const own = DNS_NAME.test(ownName) ? [ownName.toLowerCase()] : [];
  return [...new Set([...usable, 'localhost', '127.0.0.1', '::1', ...own])];
}

function hostOf(url: string): string {
  return bare(new URL(url).hostname);
}

/** Without the brackets of IPv6 literals. */
function bare(host: string): string {
  return host.replace(/^\[|\]$/g, '').toLowerCase();
}
