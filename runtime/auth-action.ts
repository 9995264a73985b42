// What the gateway and the actions behind /api/auth tell each other: cookies as names and secrets.
import type { LIFETIME_SECONDS } from '../contract/auth-endpoints.ts';

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
  /** Of its life. */
  remainingMs: number;
}
