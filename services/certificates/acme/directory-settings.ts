// The authority of one's own. Its directory is read before it is saved, so that what is wrong is told at once.
import { fail } from '../../../contract/errors.ts';
import type { Input, Output } from '../../../contract/procedure.ts';
import { type acmeDirectory, MAX_DIRECTORY_AUTHORITIES } from '../../../contract/resources/acme-directory.ts';
import { recordAudit } from '../../../models/audit/audit-entry.ts';
import {
  type AcmeDirectory,
  directorySecretPlace,
  lockAcmeDirectory,
  readAcmeDirectory,
  writeAcmeDirectory,
} from '../../../models/certificates/acme-directory.ts';
import { readAuthorities } from '../../../models/certificates/certificate-check.ts';
import { settingTarget } from '../../../models/db/setting.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../../models/db/updated-at.ts';
import type { Call } from '../../../runtime/call.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { write } from '../../../runtime/write.ts';
import { customAt, directoryFault } from './authority.ts';
import { readDirectory } from './protocol/client.ts';

type Settings = Output<typeof acmeDirectory.get>;

/** When it was saved that never was. */
const NEVER = new Date(0);
const TARGET = settingTarget('acme_directory');

export async function getAcmeDirectory({ pools }: Runtime): Promise<Settings> {
  return present(await readAcmeDirectory(pools.api));
}

/**
 * Saves where the authority is; a key that is not given stays while its id does. Throws ACME_DIRECTORY_CA_INVALID,
 * ACME_DIRECTORY_EAB_INCOMPLETE, ACME_DIRECTORY_INVALID and UPDATED_AT_MISMATCH.
 */
export async function setAcmeDirectory(
  runtime: Runtime,
  { url, caPem = '', eabKid = '', eabHmacKey, expectedUpdatedAt }: Input<typeof acmeDirectory.set>,
  call: Call,
): Promise<Settings> {
  if (caPem !== '') {
    const read = readAuthorities(caPem, MAX_DIRECTORY_AUTHORITIES);
    if (typeof read === 'string') fail('ACME_DIRECTORY_CA_INVALID', { reason: read });
  }
  const address = url === null ? null : directoryUrl(url);
  if (address !== null) {
    await readDirectory(customAt(address, caPem)).catch((error: unknown) => {
      fail('ACME_DIRECTORY_INVALID', { reason: directoryFault(error) }, error);
    });
  }
  return write(runtime, call, {}, async (tx) => {
    const before = await lockAcmeDirectory(tx.sql);
    const former = before?.updatedAt ?? NEVER;
    assertUpdatedAt(expectedUpdatedAt, former);
    const sealed = sealedKey(runtime, before, eabKid, eabHmacKey);
    if ((eabKid === '') !== (sealed === null)) fail('ACME_DIRECTORY_EAB_INCOMPLETE');
    const given = { url: address, caPem, eabKid, eabHmacKey: sealed, updatedAt: nextUpdatedAt(former, tx.now) };
    await writeAcmeDirectory(tx.sql, given);
    await recordAudit(tx, 'system.acme_directory_update', TARGET, { url: address, eabKid });
    return present(given);
  });
}

function sealedKey(
  { sealer }: Runtime,
  before: AcmeDirectory | undefined,
  eabKid: string,
  eabHmacKey: string | undefined,
): string | null {
  if (eabHmacKey) return sealer.seal(Buffer.from(eabHmacKey), directorySecretPlace());
  if (eabHmacKey === '' || eabKid === '' || before?.eabKid !== eabKid) return null;
  return before.eabHmacKey;
}

/** Throws ACME_DIRECTORY_INVALID. */
function directoryUrl(text: string): string {
  const url = URL.parse(text);
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '' || url.hash !== '') {
    return fail('ACME_DIRECTORY_INVALID', { reason: 'url' });
  }
  return url.href;
}

function present(row: AcmeDirectory | undefined): Settings {
  if (!row) return { url: null, caPem: '', eabKid: '', eabHmacKeySet: false, updatedAt: null };
  const { url, caPem, eabKid, eabHmacKey, updatedAt } = row;
  return { url, caPem, eabKid, eabHmacKeySet: eabHmacKey !== null, updatedAt: updatedAt.toISOString() };
}
