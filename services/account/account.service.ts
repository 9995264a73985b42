import type { ServiceSchema } from 'moleculer';
import { fail } from '../../contract/errors.ts';
import type { Output } from '../../contract/procedure.ts';
import { account } from '../../contract/resources/account.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import { ServiceAccount } from '../../models/auth/service-account.ts';
import { User } from '../../models/auth/user.ts';
import type { Call } from '../../runtime/call.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';

export const roles: Role[] = ['app'];

type Me = Output<typeof account.me>;

export default (runtime: Runtime): ServiceSchema => ({
  name: 'account',
  mixins: [
    contractService([
      implement(account.me, (_input, { actor }) =>
        actor.type === 'service_account' ? whichAccount(runtime, actor) : whoCalls(runtime, actor),
      ),
    ]),
  ],
});

/** The operator, whether by session or by one of the operator's keys. */
async function whoCalls({ pools }: Runtime, { type, id }: Call['actor']): Promise<Me> {
  const user = await (type === 'api_key' ? User.withAccessKey(pools.api, id!) : User.byId(pools.api, id!));
  if (!user) fail('UNAUTHORIZED');
  const { name, email, twoFactorEnabled } = user;
  return { user: { id: user.id, name, email, twoFactorEnabled }, serviceAccount: null };
}

/** A service account, which stands in for a user as well. */
async function whichAccount({ pools }: Runtime, actor: Call['actor']): Promise<Me> {
  const found = await ServiceAccount.query(pools.api).findById(actor.id!);
  if (!found) fail('UNAUTHORIZED');
  const { id, name, scopes } = found;
  return { user: { id, name, email: '', twoFactorEnabled: false }, serviceAccount: { id, name, scopes } };
}
