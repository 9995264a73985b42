// What the types of forms take and refuse: held by the types of the Web UI, never run.
import type { ccTemplate } from '@contract/resources/cc-template.ts';
import type { clientIp } from '@contract/resources/client-ip.ts';
import type { sites } from '@contract/resources/sites.ts';
import type { FieldPath, GroupsOf } from '@/shared/forms/field.ts';

export const taken: readonly FieldPath<typeof sites.update>[] = ['name', 'origins', 'originSettings.tries'];
export const whole: FieldPath<typeof clientIp.set> = 'settings';
export const inside: FieldPath<typeof clientIp.set> = 'settings.header';

// @ts-expect-error a field that there is not
export const misspelt: FieldPath<typeof sites.update> = 'originSettings.trys';
// @ts-expect-error a list is one value
export const entry: FieldPath<typeof sites.update> = 'origins.0.port';
// @ts-expect-error a field of another procedure
export const foreign: GroupsOf<typeof ccTemplate.set> = [{ fields: [{ path: 'domains', label: '' }] }];
