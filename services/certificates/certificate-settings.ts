import type { Output } from '../../contract/procedure.ts';
import type { certificates } from '../../contract/resources/certificates.ts';

/** Whom certificates can be asked of. */
export function certificateSettings(): Output<typeof certificates.settings> {
  return { acmeDirectory: null, acmeDirectoryEab: false, defaultCa: 'letsencrypt' };
}
