// Which certificates the configuration names: learnt from the entries of HTTPS as they come and go.
import { fromBinary } from '@bufbuild/protobuf';
import { SiteHttpsSchema } from '../../../proto/gen/svc/config/v1/https_pb.js';
import type { EntryObserver } from '../config/config-store.ts';
import { FINGERPRINT_BYTES, type Fingerprint, fingerprintOf } from './fingerprint.ts';

export const HTTPS_KIND = 'site-https';
/** An entry names no more. */
const MAX_OF_SITE = 16;

/** A certificate that entries name. */
export interface UsedCertificate {
  certificateId: string;
  /** For reports. */
  name: string;
  /** Sites that name it, and those of them that want staples. */
  sites: number;
  stapling: number;
}

interface SiteUse {
  fingerprints: readonly Fingerprint[];
  stapling: boolean;
}

/** Certificates that an encoded entry of HTTPS names; none when it cannot be read, which its compiler says. */
export function certificatesOf(body: Uint8Array): { id: string; name: string; fingerprint: Fingerprint }[] {
  return readSite(body)?.certificates ?? [];
}

function readSite(body: Uint8Array) {
  try {
    const { certificates, ocspStapling } = fromBinary(SiteHttpsSchema, body);
    return {
      stapling: ocspStapling,
      certificates: certificates
        .slice(0, MAX_OF_SITE)
        .filter((ref) => ref.fingerprint.length === FINGERPRINT_BYTES)
        .map((ref) => ({ id: ref.certificateId, name: ref.name, fingerprint: fingerprintOf(ref.fingerprint) })),
    };
  } catch {
    return undefined;
  }
}

export class CertificateUses implements EntryObserver {
  private readonly sites = new Map<string, SiteUse>();
  private readonly used = new Map<Fingerprint, UsedCertificate>();
  private readonly changed: (fingerprint: Fingerprint) => void;
  /** Entries of HTTPS that came or went so far. */
  changes = 0;

  /** `changed`: an entry names a certificate that none named before, or none does any more. */
  constructor(changed: (fingerprint: Fingerprint) => void) {
    this.changed = changed;
  }

  get(fingerprint: Fingerprint): UsedCertificate | undefined {
    return this.used.get(fingerprint);
  }

  entries(): Iterable<[Fingerprint, UsedCertificate]> {
    return this.used.entries();
  }

  /** Certificates of a site. */
  ofSite(siteId: string): readonly Fingerprint[] {
    return this.sites.get(siteId)?.fingerprints ?? [];
  }

  put(kind: string, id: string, body: Uint8Array): void {
    if (kind !== HTTPS_KIND) return;
    this.changes++;
    const site = readSite(body);
    const before = this.sites.get(id);
    // First what is named now, so that what stays is never unnamed in between.
    if (site) {
      for (const { id: certificateId, name, fingerprint } of site.certificates)
        this.name(fingerprint, certificateId, name, site.stapling);
      this.sites.set(id, {
        fingerprints: site.certificates.map(({ fingerprint }) => fingerprint),
        stapling: site.stapling,
      });
    } else {
      this.sites.delete(id);
    }
    if (before) this.unname(before);
  }

  remove(kind: string, id: string): void {
    if (kind !== HTTPS_KIND) return;
    this.changes++;
    const before = this.sites.get(id);
    this.sites.delete(id);
    if (before) this.unname(before);
  }

  clear(): void {
    this.changes++;
    const gone = [...this.used.keys()];
    this.sites.clear();
    this.used.clear();
    for (const fingerprint of gone) this.changed(fingerprint);
  }

  private name(fingerprint: Fingerprint, certificateId: string, name: string, stapling: boolean): void {
    const use = this.used.get(fingerprint);
    if (use) {
      use.sites++;
      use.stapling += stapling ? 1 : 0;
      return;
    }
    this.used.set(fingerprint, { certificateId, name, sites: 1, stapling: stapling ? 1 : 0 });
    this.changed(fingerprint);
  }

  private unname({ fingerprints, stapling }: SiteUse): void {
    for (const fingerprint of fingerprints) {
      const use = this.used.get(fingerprint);
      if (!use) continue;
      use.sites--;
      use.stapling -= stapling ? 1 : 0;
      if (use.sites > 0) continue;
      this.used.delete(fingerprint);
      this.changed(fingerprint);
    }
  }
}
