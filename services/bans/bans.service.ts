import type { ServiceSchema } from 'moleculer';
import { banSettings, bans } from '../../contract/resources/bans.ts';
import { lostBans } from '../../contract/resources/lost-bans.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { getBanSettings, setBanSettings } from './ban-settings.ts';
import { banCreator } from './create-ban.ts';
import { liftBan } from './lift-ban.ts';
import { listBans } from './list-bans.ts';
import { listLostBans, lostBanStatus } from './lost-bans.ts';
import { banPreviewer } from './preview-ban.ts';
import { rehearseBanSettings } from './rehearse-ban-settings.ts';

export const roles: Role[] = ['app'];
export const belongings = ['relay', 'ban-fanout'];
export const pools = { api: 10, bans: 6 };

export default (runtime: Runtime): ServiceSchema => ({
  name: 'bans',
  mixins: [
    contractService([
      implement(bans.list, (input) => listBans(runtime, input)),
      implement(bans.create, banCreator(runtime)),
      implement(bans.preview, banPreviewer(runtime)),
      implement(bans.delete, (input, call) => liftBan(runtime, input, call)),
      implement(lostBans.list, (input) => listLostBans(runtime, input)),
      implement(lostBans.status, () => lostBanStatus(runtime)),
      implement(banSettings.get, () => getBanSettings(runtime)),
      implement(banSettings.set, (input, call) => setBanSettings(runtime, input, call)),
      implement(banSettings.rehearse, (input) => rehearseBanSettings(runtime, input)),
    ]),
  ],
});
