// Service accounts. What changes about an account changes what its keys may do, so gateways forget them then.
import { isDeepStrictEqual } from 'node:util';
import { fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { serviceAccounts } from '../../contract/resources/service-accounts.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { ServiceAccount, ServiceAccountKey } from '../../models/auth/service-account.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { violatedConstraint } from '../../models/db/violations.ts';
import type { Call } from '../../runtime/call.ts';
import { endCredentials } from '../../runtime/ended-credentials.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Tx, write } from '../../runtime/write.ts';
import { type AccountOutput, presentAccount, presentAccounts } from './present.ts';

export async function listServiceAccounts(
  { pools }: Runtime,
  input: Input<typeof serviceAccounts.list>,
): Promise<Output<typeof serviceAccounts.list>> {
  const { limit, offset } = pageOf(input);
  const [accounts, total] = await Promise.all([
    ServiceAccount.page(pools.api, limit, offset),
    ServiceAccount.query(pools.api).resultSize(),
  ]);
  return { items: await presentAccounts(pools.api, accounts), total };
}

/** Throws SERVICE_ACCOUNT_NAME_TAKEN. */
export async function createServiceAccount(
  runtime: Runtime,
  { name, scopes = [], enabled = true }: Input<typeof serviceAccounts.create>,
  call: Call,
): Promise<AccountOutput> {
  return write(runtime, call, { status: 201 }, async (tx) => {
    const content = { name, scopes: scopes.toSorted(), enabled };
    const account = await ServiceAccount.query(tx.sql)
      .insert({ ...content, createdAt: tx.now, updatedAt: tx.now })
      .returning('*')
      .catch(asNameTaken(name));
    await recordAudit(tx, 'service_account.create', targetOf(account), content);
    return presentAccount(tx.sql, account);
  });
}

/** Changes the given fields; nothing differs, nothing is written. Throws the contract's errors. */
export async function updateServiceAccount(
  runtime: Runtime,
  input: Input<typeof serviceAccounts.update>,
  call: Call,
): Promise<AccountOutput> {
  return write(runtime, call, {}, async (tx) => {
    const account = (await ServiceAccount.locked(tx.sql, input.id)) ?? fail('SERVICE_ACCOUNT_NOT_FOUND');
    assertUpdatedAt(input.expectedUpdatedAt, account.updatedAt);
    const before = { name: account.name, scopes: account.scopes, enabled: account.enabled };
    const { name = before.name, scopes = before.scopes, enabled = before.enabled } = input;
    const after = { name, scopes: scopes.toSorted(), enabled };
    if (!isDeepStrictEqual(before, after)) {
      const updatedAt = nextUpdatedAt(account.updatedAt, tx.now);
      await ServiceAccount.query(tx.sql)
        .patch({ ...after, updatedAt })
        .where({ id: account.id })
        .catch(asNameTaken(name));
      Object.assign(account, after, { updatedAt });
      await recordAudit(tx, 'service_account.update', targetOf(account), { before, after });
      await endCredentials(tx, await liveHashes(tx, account));
    }
    return presentAccount(tx.sql, account);
  });
}

/** Throws SERVICE_ACCOUNT_NOT_FOUND. */
export async function deleteServiceAccount(
  runtime: Runtime,
  { id }: Input<typeof serviceAccounts.delete>,
  call: Call,
): Promise<Output<typeof serviceAccounts.delete>> {
  return write(runtime, call, {}, async (tx) => {
    const account = (await ServiceAccount.locked(tx.sql, id)) ?? fail('SERVICE_ACCOUNT_NOT_FOUND');
    const hashes = await liveHashes(tx, account);
    await endCredentials(tx, hashes);
    await ServiceAccount.query(tx.sql).deleteById(id);
    await recordAudit(tx, 'service_account.delete', targetOf(account), { liveKeys: hashes.length });
    return {};
  });
}

async function liveHashes({ sql }: Tx, { id }: ServiceAccount): Promise<Buffer[]> {
  return (await ServiceAccountKey.live(sql, id)).map((key) => key.secretHash);
}

export function targetOf({ id, name }: ServiceAccount) {
  return { type: 'service_account', id, name };
}

function asNameTaken(name: string): (error: unknown) => never {
  return (error) => {
    if (violatedConstraint(error) === 'service_account_name_key') fail('SERVICE_ACCOUNT_NAME_TAKEN', { name });
    throw error;
  };
}
