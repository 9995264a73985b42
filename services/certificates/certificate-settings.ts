import type { Output } from '../../contract/procedure.ts';
import type { certificates } from '../../contract/resources/certificates.ts';
import { readAcmeDirectory } from '../../models/certificates/acme-directory.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** Whom certificates can be asked of. */
export async function certificateSettings({ pools }: Runtime): Promise<Output<typeof certificates.settings>> {
  const own = await readAcmeDirectory(pools.api);
  return { acmeDirectory: own?.url ?? null, acmeDirectoryEab: Boolean(own?.eabHmacKey), defaultCa: 'letsencrypt' };
}
