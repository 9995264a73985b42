import type { ServiceSchema } from 'moleculer';
import { system } from '../../contract/resources/system.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import { isSetUp } from '../../models/db/console-state.ts';
import { edgeBuild } from '../../runtime/edge-build.ts';
import type { Role } from '../../runtime/env.ts';
import { Passwords } from '../../runtime/passwords.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { setUp } from './set-up.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => {
  const passwords = new Passwords();
  return {
    name: 'system',
    mixins: [
      contractService([
        implement(system.status, async () => {
          const { version, publicUrl, downloadsDir } = runtime.env;
          const building = await edgeBuild(downloadsDir);
          return {
            initialized: await isSetUp(runtime.pools.api),
            version,
            publicUrl,
            ...(building && { edgeBuild: building }),
          };
        }),
        implement(system.setup, (input, call) => setUp(runtime, passwords, input, call)),
      ]),
    ],
  };
};
