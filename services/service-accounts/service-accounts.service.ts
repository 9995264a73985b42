import type { Context, ServiceSchema } from 'moleculer';
import { serviceAccounts } from '../../contract/resources/service-accounts.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import { repeatable } from '../../mixins/repeatable.ts';
import { type KeyUse, noteKeyUse } from '../../models/auth/key-use.ts';
import { accountBySecretHash } from '../../models/auth/service-account.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { createServiceAccountKey, revokeServiceAccountKey } from './keys.ts';
import {
  createServiceAccount,
  deleteServiceAccount,
  listServiceAccounts,
  updateServiceAccount,
} from './service-accounts.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema =>
  ({
    name: 'service-accounts',
    mixins: [
      contractService([
        implement(serviceAccounts.list, (input) => listServiceAccounts(runtime, input)),
        implement(serviceAccounts.create, (input, call) => createServiceAccount(runtime, input, call)),
        implement(serviceAccounts.update, (input, call) => updateServiceAccount(runtime, input, call)),
        implement(serviceAccounts.delete, (input, call) => deleteServiceAccount(runtime, input, call)),
        implement(serviceAccounts.createKey, (input, call) => createServiceAccountKey(runtime, input, call)),
        implement(serviceAccounts.revokeKey, (input, call) => revokeServiceAccountKey(runtime, input, call)),
      ]),
    ],
    actions: {
      // For gateways: the account of the live key with this SHA-256 (hexadecimal).
      'serviceAccounts.find': repeatable(async ({ params }: Context<{ hash: string }>) => {
        const account = await accountBySecretHash(runtime.pools.api, Buffer.from(params.hash, 'hex'));
        return account ? { kind: 'service_account', ...account } : null;
      }),
      'serviceAccounts.touch': repeatable(({ params }: Context<{ keys: KeyUse[] }>) =>
        noteKeyUse(runtime.pools.api, 'service_account_key', params.keys),
      ),
    },
  }) as unknown as ServiceSchema;
