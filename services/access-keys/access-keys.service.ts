import type { Context, ServiceSchema } from 'moleculer';
import { accessKeys } from '../../contract/resources/access-keys.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import { repeatable } from '../../mixins/repeatable.ts';
import { AccessKey } from '../../models/auth/access-key.ts';
import { type KeyUse, noteKeyUse } from '../../models/auth/key-use.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { createAccessKey } from './create-access-key.ts';
import { presentAccessKey } from './present-access-key.ts';
import { revokeAccessKey } from './revoke-access-key.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema =>
  ({
    name: 'access-keys',
    mixins: [
      contractService([
        implement(accessKeys.list, async ({ page = 1, pageSize = 50 }) => {
          const sql = runtime.pools.api;
          const [keys, total] = await Promise.all([
            AccessKey.newest(sql, pageSize, (page - 1) * pageSize),
            AccessKey.query(sql).resultSize(),
          ]);
          return { items: keys.map(presentAccessKey), total };
        }),
        implement(accessKeys.create, (input, call) => createAccessKey(runtime, input, call)),
        implement(accessKeys.revoke, (input, call) => revokeAccessKey(runtime, input, call)),
      ]),
    ],
    actions: {
      // For gateways: the live key with this SHA-256 (hexadecimal).
      'accessKeys.find': repeatable(async ({ params }: Context<{ hash: string }>) => {
        const key = await AccessKey.bySecretHash(runtime.pools.api, Buffer.from(params.hash, 'hex'));
        return key ? { kind: 'access_key', keyId: key.id, id: key.id, name: key.name, scope: key.scope } : null;
      }),
      'accessKeys.touch': repeatable(({ params }: Context<{ keys: KeyUse[] }>) =>
        noteKeyUse(runtime.pools.api, 'access_key', params.keys),
      ),
    },
  }) as unknown as ServiceSchema;
