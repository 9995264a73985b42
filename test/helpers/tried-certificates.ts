// Uploaded certificates of sites that are called *.example, replaced by others of the same names.

import { publishClusterRequests } from '../../pipeline/publish-requested.ts';
import { systemCall } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { replaceCertificate, uploadCertificate } from '../../services/certificates/write-certificates.ts';
import { type TestCertificate, testCertificate } from './site-certificates.ts';

export class TriedCertificates {
  readonly ids: readonly string[];
  /** What each is now, in hexadecimal. */
  readonly fingerprints = new Map<string, string>();
  readonly #runtime: Runtime;
  readonly #chains: readonly TestCertificate[];
  #next = 0;

  private constructor(runtime: Runtime, chains: readonly TestCertificate[], ids: readonly string[]) {
    this.#runtime = runtime;
    this.#chains = chains;
    this.ids = ids;
  }

  /** Two of them. */
  static async create(runtime: Runtime): Promise<TriedCertificates> {
    const chains = await Promise.all(Array.from({ length: 4 }, () => testCertificate(['*.example'])));
    const ids: string[] = [];
    for (const name of ['first', 'second']) {
      const { chainPem, privateKeyPem } = chains[ids.length]!;
      ids.push((await uploadCertificate(runtime, { name, chainPem, privateKeyPem }, systemCall('test'))).id);
    }
    const made = new TriedCertificates(runtime, chains, ids);
    for (const [at, id] of ids.entries()) made.fingerprints.set(id, chains[at]!.fingerprint);
    return made;
  }

  /** Answers when the cluster has it, as far as it shows the certificate. */
  async replace(which: number, clusterId: string): Promise<void> {
    const id = this.ids[which]!;
    const { chainPem, privateKeyPem, fingerprint } = this.#chains[this.#next++ % this.#chains.length]!;
    await replaceCertificate(this.#runtime, { id, chainPem, privateKeyPem }, systemCall('test'));
    this.fingerprints.set(id, fingerprint);
    await publishClusterRequests(this.#runtime, systemCall('test'), clusterId);
  }
}
