// What the gateway and the actions behind /api/auth tell each other: cookies as names and secrets.
import type { LIFETIME_SECONDS } from '../contract/auth-endpoints.ts';
import type { Runtime } from './runtime.ts';

/** Redis channel on which gateways hear that sessions ended, and look at those with open streams; prefixed like every name. */
export const SESSIONS_ENDED_CHANNEL = 'svc:sessions-ended';

/** Makes every gateway look at once, or within 5 s while Redis is away. Call it after the commit. */
export function tellSessionsEnded({ redis, env, log }: Runtime): void {
  redis
    .publish(env.redisPrefix + SESSIONS_ENDED_CHANNEL, '1')
    .catch((err) => log.debug({ err }, 'telling gateways of ended sessions failed'));
}

export type CookieName = keyof typeof LIFETIME_SECONDS;

/** The secrets that came with a request. */
export type BroughtCookies = Readonly<Record<CookieName, string | null>>;

/** A secret to hand to the browser, `lasting` or until it is closed; `end` takes it away. */
export type CookieChange = { token: string; lasting: boolean } | 'end';

export interface AuthParams {
  input: unknown;
  cookies: BroughtCookies;
}

export interface AuthAnswer<Body = unknown> {
  body: Body;
  cookies?: Partial<Record<CookieName, CookieChange>>;
}

/** What auth.session tells of a live session. */
export interface KnownSession {
  userId: string;
  name: string;
  /** It was prolonged: its cookie is due to be sent again. */
  refreshed: boolean;
  lasting: boolean;
}
