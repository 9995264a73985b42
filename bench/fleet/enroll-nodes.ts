// Enrolls many nodes through the real channel: one token, one key and one certificate each, a bounded number at once.
import { setTimeout as delay } from 'node:timers/promises';
import { createCertificateRequest } from '../../agents/kit/certificate-request.ts';
import { fetchPinnedAuthority, parsePin, parseServerUrl } from '../../agents/kit/pinned-tls.ts';
import { CallRefused, Connection, type Identity } from './connection.ts';

const ATTEMPTS = 10;
const PAUSE_MS = 200;

export interface Token {
  token: string;
  caSha256: string;
}

/** Runs `task` for 0..count-1, at most `parallel` at once; stops at the first error. */
export async function inParallel<T>(
  count: number,
  parallel: number,
  task: (index: number) => Promise<T>,
): Promise<T[]> {
  const results: T[] = new Array(count);
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < count) {
      const index = next++;
      results[index] = await task(index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(parallel, count) }, work));
  return results;
}

/** Asks again as an agent does, a few times, while the console is too busy to answer; a refusal is none of that. */
export async function whileBusy<T>(call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof CallRefused) || error.code !== 'unavailable' || attempt === ATTEMPTS) throw error;
      await delay(PAUSE_MS * attempt);
    }
  }
}

/** Identities of `count` new nodes. Tokens are sent over one connection: Enroll needs no certificate of its own. */
export async function enrollNodes(
  count: number,
  serverUrl: string,
  newToken: (index: number) => Promise<Token>,
  features: readonly string[],
  parallel = 16,
): Promise<Identity[]> {
  if (count === 0) return [];
  const first = await newToken(0);
  const authorityPem = await fetchPinnedAuthority(parseServerUrl(serverUrl), parsePin(first.caSha256));
  const connection = new Connection(serverUrl, authorityPem);
  try {
    return await inParallel(count, parallel, async (index) => {
      const [{ token }, { keyPem, csrPem }] = await Promise.all([
        index === 0 ? first : newToken(index),
        createCertificateRequest(`sim-${index}`),
      ]);
      const { nodeId, clusterId, certificatePem } = await whileBusy(() =>
        connection.call('enroll', {
          token,
          csrPem,
          info: {
            hostname: `sim-${index}`,
            agentVersion: 'simulator',
            os: 'linux',
            arch: 'amd64',
            features: [...features],
          },
        }),
      );
      return { nodeId, clusterId, keyPem, certificatePem, authorityPem };
    });
  } finally {
    connection.destroy();
  }
}
