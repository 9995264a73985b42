// A certificate that was issued takes its place: in its row, and on the site that waits for it.
import { bindCertificate } from '../../../models/bind-certificate.ts';
import { type CertificateRow, replaceMaterial } from '../../../models/certificate.ts';
import type { CertificateMaterial } from '../../../models/certificate-check.ts';
import type { Sealer } from '../../../runtime/sealer.ts';
import type { Tx } from '../../../runtime/write.ts';

/** Answers the clusters for publishRequested, to be called after the commit. */
export async function install(
  tx: Tx,
  sealer: Sealer,
  certificate: CertificateRow,
  material: CertificateMaterial,
): Promise<string[]> {
  const clusters = await replaceMaterial(tx, sealer, certificate, material);
  if (certificate.bindSiteId === null) return clusters;
  const bound = await bindCertificate(tx, certificate.bindSiteId, certificate.id);
  return [...new Set([...clusters, ...bound])];
}
