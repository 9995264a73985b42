// Completes an uploaded chain that lacks intermediates, from the addresses that its last certificate names.
import type { X509Certificate } from 'node:crypto';
import { MAX_CHAIN } from '../../contract/resources/certificates.ts';
import { isSelfIssued, missingIssuer, readIssuers } from '../../models/certificates/certificate-chain.ts';
import { type CertificateMaterial, isUsableIssuer } from '../../models/certificates/certificate-check.ts';
import { sendOutbound } from '../../runtime/outbound.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** For all fetches of one upload. */
const DEADLINE_MS = 5_000;
const MAX_FETCHES = 4;
const MAX_BYTES = 65_536;

/**
 * The material with the intermediates that could be fetched. A failed fetch leaves the chain as it is: its warning says
 * what it lacks. A root is not added, because clients have it.
 */
export async function completeChain(
  { env }: Pick<Runtime, 'env'>,
  material: CertificateMaterial,
): Promise<CertificateMaterial> {
  const chain = [...material.chain];
  const deadline = Date.now() + DEADLINE_MS;
  for (let fetches = 0; fetches < MAX_FETCHES && chain.length < MAX_CHAIN; ) {
    const url = missingIssuer(chain)?.urls[0];
    const timeoutMs = deadline - Date.now();
    if (url === undefined || timeoutMs <= 0) break;
    fetches++;
    const issuer = await fetchIssuer(url, chain.at(-1)!, { allow: env.outboundAllow, timeoutMs });
    if (issuer === null || isSelfIssued(issuer)) break;
    chain.push(issuer.raw);
  }
  return { ...material, chain };
}

async function fetchIssuer(
  url: string,
  issued: Buffer,
  bounds: { allow: readonly string[]; timeoutMs: number },
): Promise<X509Certificate | null> {
  try {
    const { status, body } = await sendOutbound({ url: new URL(url), method: 'GET', maxBytes: MAX_BYTES, ...bounds });
    if (status !== 200) return null;
    return readIssuers(body).find((issuer) => isUsableIssuer(issuer, issued)) ?? null;
  } catch {
    return null;
  }
}
