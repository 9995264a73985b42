import { fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { certificates } from '../../contract/resources/certificates.ts';
import { certificateById } from '../../models/certificates/certificate.ts';
import { certificateNodePage } from '../../models/certificates/certificate-nodes.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** Throws CERTIFICATE_NOT_FOUND. */
export async function certificateNodes(
  { pools }: Runtime,
  { id, ...page }: Input<typeof certificates.nodes>,
): Promise<Output<typeof certificates.nodes>> {
  const certificate = (await certificateById(pools.api, id)) ?? fail('CERTIFICATE_NOT_FOUND');
  const { limit, offset } = pageOf(page);
  return certificateNodePage(pools.api, certificate, limit, offset);
}
