import type { ServiceSchema } from 'moleculer';
import type { Output } from '../../contract/procedure.ts';
import { settings } from '../../contract/resources/settings.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import { setupCompletedAt } from '../../models/db/console-state.ts';
import { nodeChannelAddress } from '../../models/nodes/node-channel-setting.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'settings',
  mixins: [contractService([implement(settings.get, () => readSettings(runtime))])],
});

async function readSettings({ env, pools }: Runtime): Promise<Output<typeof settings.get>> {
  const sql = pools.api;
  const [address, authority, setUpAt] = await Promise.all([
    nodeChannelAddress(sql, env),
    sql('certificate_authority').orderBy('created_at', 'desc').first('certificate_sha256'),
    setupCompletedAt(sql),
  ]);
  return {
    version: env.version,
    consoleUrl: env.publicUrl,
    nodeApiUrl: address.effectiveUrl,
    nodeCaSha256: (authority?.certificate_sha256 as Buffer | undefined)?.toString('hex') ?? null,
    analyticsMode: 'lite',
    setupCompletedAt: setUpAt?.toISOString() ?? null,
  };
}
