import type { Output } from '../../contract/procedure.ts';
import type { accessKeys } from '../../contract/resources/access-keys.ts';
import type { AccessKey } from '../../models/auth/access-key.ts';

export function presentAccessKey(key: AccessKey): Output<typeof accessKeys.revoke> {
  return {
    id: key.id,
    name: key.name,
    prefix: key.prefix,
    scope: key.scope,
    state: key.revokedAt === null ? 'active' : 'revoked',
    createdAt: key.createdAt.toISOString(),
    lastUsedAt: key.lastUsedAt?.toISOString() ?? null,
    revokedAt: key.revokedAt?.toISOString() ?? null,
  };
}
