// The cookies of sign-in. Their names carry the console's id, because cookies ignore ports.
import { LIFETIME_SECONDS } from '../../contract/auth-endpoints.ts';
import type { AuthAnswer, BroughtCookies, CookieChange, CookieName } from '../../runtime/auth-action.ts';
import type { ConsoleEnv } from '../../runtime/env.ts';

export interface Cookies {
  /** The secret in a Cookie header; null when there is none or more than one. */
  read(header: string | undefined, name: CookieName): string | null;
  readAll(header: string | undefined): BroughtCookies;
  /** The Set-Cookie value of a change. */
  change(name: CookieName, change: CookieChange): string;
  /** Set-Cookie values; nothing is taken away that the Cookie header does not have. */
  changes(header: string | undefined, changes: AuthAnswer['cookies']): string[];
}

const TOKEN = /^[A-Za-z0-9_-]{43}$/;

const NAMES: Readonly<Record<CookieName, string>> = {
  session: 'svc_session',
  secondStep: 'svc_second_step',
  trustedDevice: 'svc_trusted_device',
};

export function createCookies({ publicUrl, instanceId }: Pick<ConsoleEnv, 'publicUrl' | 'instanceId'>): Cookies {
  const secure = publicUrl.startsWith('https:');
  const attributes = `Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`;
  const nameOf = (name: CookieName) => `${secure ? '__Host-' : ''}${NAMES[name]}_${instanceId}`;
  const starts = {
    session: `${nameOf('session')}=`,
    secondStep: `${nameOf('secondStep')}=`,
    trustedDevice: `${nameOf('trustedDevice')}=`,
  } satisfies Record<CookieName, string>;
  const read = (header: string | undefined, name: CookieName) => {
    const start = starts[name];
    let value: string | null = null;
    for (const pair of header?.split(';') ?? []) {
      const text = pair.trim();
      if (!text.startsWith(start)) continue;
      if (value !== null) return null;
      value = text.slice(start.length);
    }
    return value !== null && TOKEN.test(value) ? value : null;
  };
  const change = (name: CookieName, to: CookieChange) => {
    if (to === 'end') return `${nameOf(name)}=; ${attributes}; Max-Age=0`;
    return `${nameOf(name)}=${to.token}; ${attributes}${to.lasting ? `; Max-Age=${LIFETIME_SECONDS[name]}` : ''}`;
  };
  return {
    read,
    readAll: (header) => ({
      session: read(header, 'session'),
      secondStep: read(header, 'secondStep'),
      trustedDevice: read(header, 'trustedDevice'),
    }),
    change,
    changes(header = '', changes = {}) {
      const due = (Object.entries(changes) as [CookieName, CookieChange][]).filter(
        ([name, to]) => to !== 'end' || header.includes(starts[name]),
      );
      return due.map(([name, to]) => change(name, to));
    },
  };
}
