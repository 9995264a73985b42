import type { Output } from '../../contract/procedure.ts';
import { MAX_SHOWN_KEYS, type serviceAccounts } from '../../contract/resources/service-accounts.ts';
import { keysOfAccounts, type ServiceAccount, type ServiceAccountKey } from '../../models/auth/service-account.ts';
import type { Runtime } from '../../runtime/runtime.ts';

type Sql = Runtime['pools']['api'];
export type AccountOutput = Output<typeof serviceAccounts.create>;
export type KeyOutput = Output<typeof serviceAccounts.revokeKey>;

/** Accounts with their keys, in the given order. */
export async function presentAccounts(sql: Sql, accounts: readonly ServiceAccount[]): Promise<AccountOutput[]> {
  const keys = await keysOfAccounts(
    sql,
    accounts.map(({ id }) => id),
    MAX_SHOWN_KEYS,
  );
  const byAccount = Map.groupBy(keys, ({ serviceAccountId }) => serviceAccountId);
  return accounts.map(({ id, name, scopes, enabled, createdAt, updatedAt }) => ({
    id,
    name,
    scopes,
    enabled,
    keys: (byAccount.get(id) ?? []).map(presentKey),
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  }));
}

export async function presentAccount(sql: Sql, account: ServiceAccount): Promise<AccountOutput> {
  return (await presentAccounts(sql, [account]))[0]!;
}

export function presentKey({ id, name, prefix, createdAt, lastUsedAt, revokedAt }: ServiceAccountKey): KeyOutput {
  return {
    id,
    name,
    prefix,
    createdAt: createdAt.toISOString(),
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
    revokedAt: revokedAt?.toISOString() ?? null,
  };
}
