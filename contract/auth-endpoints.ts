// The sign-in endpoints under /api/auth: exactly these paths and methods exist. They are not procedures: they answer
// cookies, and no key reaches them.
import Type, { type TObject } from 'typebox';
import { Input } from './scalars/common.ts';

export interface AuthEndpoint {
  /** Name of the action. */
  readonly name: string;
  readonly method: 'GET' | 'POST';
  /** Below /api/auth. */
  readonly path: string;
  readonly input: TObject;
}

export const AUTH_ENDPOINTS = {
  getSession: { name: 'auth.getSession', method: 'GET', path: '/get-session', input: Input({}) },
  signInEmail: {
    name: 'auth.signInEmail',
    method: 'POST',
    path: '/sign-in/email',
    input: Input({
      email: Type.String({ minLength: 1, maxLength: 254 }),
      password: Type.String({ minLength: 1, maxLength: 128 }),
      rememberMe: Type.Optional(Type.Boolean({ default: true, description: 'false: until the browser is closed.' })),
    }),
  },
  signOut: { name: 'auth.signOut', method: 'POST', path: '/sign-out', input: Input({}) },
} as const satisfies Record<string, AuthEndpoint>;
