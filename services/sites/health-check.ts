import { badField } from '../../contract/errors.ts';
import type { ActiveHealthCheck } from '../../contract/resources/site-health-check.ts';
import { normaliseHostHeader } from '../../contract/scalars/host-header.ts';

const AT = '/originSettings/activeHealthCheck';

/** The check with the given fields changed. Throws BAD_REQUEST that names the field that does not go with the others. */
export function changedHealthCheck(
  before: ActiveHealthCheck,
  given: Partial<ActiveHealthCheck> | undefined,
): ActiveHealthCheck {
  if (!given) return before;
  const check = { ...before, ...given };
  const { intervalSeconds, timeoutSeconds, expectedStatusMin, expectedStatusMax } = check;
  if (timeoutSeconds > intervalSeconds) badField(`${AT}/timeoutSeconds`, 'maximum', { limit: intervalSeconds });
  if (expectedStatusMax < expectedStatusMin) {
    badField(`${AT}/expectedStatusMax`, 'minimum', { limit: expectedStatusMin });
  }
  const host = normaliseHostHeader(check.host) ?? badField(`${AT}/host`, 'hostName');
  return { ...check, host };
}
