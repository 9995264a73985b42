import type { ServiceSchema } from 'moleculer';
import { ccTemplate } from '../../contract/resources/cc-template.ts';
import { protection } from '../../contract/resources/protection.ts';
import { protectionSettings } from '../../contract/resources/protection-settings.ts';
import { PUBLISHING } from '../../mixins/belongings.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { getCcTemplate, setCcTemplate } from './cc-template.ts';
import { getProtectionSettings, setProtectionSettings } from './protection-settings.ts';
import { rehearseProtection, rehearseTemplate } from './rehearse.ts';
import { getProtection, updateProtection } from './site-protection.ts';

export const roles: Role[] = ['app'];
export const belongings = PUBLISHING;

export default (runtime: Runtime): ServiceSchema => ({
  name: 'protection',
  mixins: [
    contractService([
      implement(protection.get, (input) => getProtection(runtime, input)),
      implement(protection.update, (input, call) => updateProtection(runtime, input, call)),
      implement(protection.rehearse, (input) => rehearseProtection(runtime, input)),
      implement(protectionSettings.get, () => getProtectionSettings(runtime)),
      implement(protectionSettings.set, (input, call) => setProtectionSettings(runtime, input, call)),
      implement(ccTemplate.get, () => getCcTemplate(runtime)),
      implement(ccTemplate.set, (input, call) => setCcTemplate(runtime, input, call)),
      implement(ccTemplate.rehearse, (input) => rehearseTemplate(runtime, input)),
    ]),
  ],
});
