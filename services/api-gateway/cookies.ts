// The session cookie. Its name carries the console's id, because cookies ignore ports.
import type { ConsoleEnv } from '../../mixins/env.ts';

export const SESSION_SECONDS = 7 * 24 * 3600;

export interface SessionCookie {
  /** The secret in a Cookie header; null when there is none or more than one. */
  read(header: string | undefined): string | null;
  /** A Set-Cookie value; `lasting` false: until the browser is closed. */
  set(token: string, lasting: boolean): string;
  clear(): string;
}

const TOKEN = /^[A-Za-z0-9_-]{43}$/;

export function sessionCookie({ publicUrl, instanceId }: Pick<ConsoleEnv, 'publicUrl' | 'instanceId'>): SessionCookie {
  const secure = publicUrl.startsWith('https:');
  const name = `${secure ? '__Host-' : ''}svc_session_${instanceId}`;
  const attributes = `Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`;
  return {
    read(header) {
      if (header === undefined) return null;
      const values = header
        .split(';')
        .map((pair) => pair.trim())
        .filter((pair) => pair.startsWith(`${name}=`))
        .map((pair) => pair.slice(name.length + 1));
      return values.length === 1 && TOKEN.test(values[0]!) ? values[0]! : null;
    },
    set: (token, lasting) => `${name}=${token}; ${attributes}${lasting ? `; Max-Age=${SESSION_SECONDS}` : ''}`,
    clear: () => `${name}=; ${attributes}; Max-Age=0`,
  };
}
