import type { ServiceSchema } from 'moleculer';
import { fail } from '../../contract/errors.ts';
import type { Output } from '../../contract/procedure.ts';
import { account } from '../../contract/resources/account.ts';
import type { Call } from '../../mixins/call.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../mixins/env.ts';
import type { Runtime } from '../../mixins/runtime.ts';
import { User } from '../../models/user.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema =>
  contractService('account', [implement(account.me, (_input, call) => whoCalls(runtime, call))]);

/** The operator, whether by session or by one of the operator's keys. */
async function whoCalls(runtime: Runtime, { actor }: Call): Promise<Output<typeof account.me>> {
  const sql = runtime.pools.api;
  const id = actor.id as string;
  const user = await (actor.type === 'api_key' ? User.withAccessKey(sql, id) : User.byId(sql, id));
  if (!user) fail('UNAUTHORIZED');
  const { name, email, twoFactorEnabled } = user;
  return { user: { id: user.id, name, email, twoFactorEnabled }, serviceAccount: null };
}
