// Whether the node channel answers at its address and proves to be ours. Advisory: it asks from where the console runs.
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import type { Output } from '../../contract/procedure.ts';
import type { nodeChannelSettings } from '../../contract/resources/node-channel-settings.ts';
import { Recent } from '../../models/db/recent.ts';
import { CertificateAuthorityRow } from '../../models/nodes/certificate-authority.ts';
import { type NodeChannelAddress, nodeChannelAddress } from '../../models/nodes/node-channel-setting.ts';
import { AddressRefused, resolveChecked, specialRange } from '../../proto/address-policy.ts';
import type { Runtime } from '../../runtime/runtime.ts';

type Check = Output<typeof nodeChannelSettings.check>;
type Result = Check['result'];

const HANDSHAKE_MS = 3_000;
const CACHED_MS = 30_000;
const MAX_CHAIN = 10;
const EVERYTHING = ['0.0.0.0/0', '::/0'];

/** Checks at most once in 30 s per address; callers of one moment share the connection. */
export class NodeChannelChecks {
  readonly #runtime: Runtime;
  readonly #recent = new Recent<Check>(CACHED_MS);

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  async check(): Promise<Check> {
    const address = await nodeChannelAddress(this.#runtime.pools.api, this.#runtime.env);
    return this.#recent.get(() => this.#run(address), `${address.source} ${address.effectiveUrl}`);
  }

  async #run(address: NodeChannelAddress): Promise<Check> {
    const authority = await CertificateAuthorityRow.current(this.#runtime.pools.api);
    const result = await checkAddress(address, authority?.certificatePem ?? null);
    return { url: address.effectiveUrl, result, checkedAt: new Date().toISOString() };
  }
}

/**
 * `mismatch` without an authority. The outbound policy applies to saved addresses: whoever writes the environment could
 * connect anywhere anyhow.
 */
export async function checkAddress(
  address: Pick<NodeChannelAddress, 'effectiveUrl' | 'source'>,
  authorityPem: string | null,
): Promise<Result> {
  const url = new URL(address.effectiveUrl);
  if (url.protocol !== 'https:' || authorityPem === null) return 'mismatch';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const deadline = Date.now() + HANDSHAKE_MS;
  let addresses: string[];
  try {
    addresses = await resolveChecked(host, address.source === 'setting' ? [] : EVERYTHING, HANDSHAKE_MS);
  } catch (error) {
    if (!(error instanceof AddressRefused)) throw error;
    return error.reason === 'forbidden' ? 'refused' : 'unreachable';
  }
  // Ordinary addresses first: a name like localhost may answer on one family only.
  const ordered = addresses.toSorted((a, b) => Number(specialRange(a) !== null) - Number(specialRange(b) !== null));
  const authority = new X509Certificate(authorityPem);
  let result: Result = 'unreachable';
  for (const candidate of ordered) {
    const remaining = deadline - Date.now();
    if (remaining <= 0) break;
    result = await handshake(candidate, Number(url.port || 443), host, remaining, authority);
    if (result !== 'unreachable') break;
  }
  return result;
}

function handshake(
  address: string,
  port: number,
  name: string,
  timeoutMs: number,
  authority: X509Certificate,
): Promise<Result> {
  const { promise, resolve } = Promise.withResolvers<Result>();
  const socket = connect({
    host: address,
    port,
    ...(isIP(name) === 0 ? { servername: name } : {}),
    ALPNProtocols: ['h2', 'http/1.1'],
    minVersion: 'TLSv1.2',
    // The chain is judged below, against the internal authority and nothing else.
    rejectUnauthorized: false,
  });
  const timer = setTimeout(() => resolve('unreachable'), timeoutMs);
  socket.once('secureConnect', () => resolve(chainHas(socket, authority) ? 'ok' : 'mismatch'));
  socket.once('error', () => resolve('unreachable'));
  socket.once('close', () => resolve('unreachable'));
  return promise.finally(() => {
    clearTimeout(timer);
    socket.destroy();
  });
}

/** The chain includes the authority, and the leaf is signed by it. */
function chainHas(socket: TLSSocket, authority: X509Certificate): boolean {
  const leaf = socket.getPeerX509Certificate();
  if (!leaf?.verify(authority.publicKey)) return false;
  let certificate: X509Certificate | undefined = leaf;
  for (let depth = 0; certificate && depth < MAX_CHAIN; depth++) {
    if (certificate.fingerprint256 === authority.fingerprint256) return true;
    certificate = certificate.issuerCertificate;
  }
  return false;
}
