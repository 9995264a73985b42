// The sign-in endpoints. They are not procedures: they answer cookies.
import type { AUTH_ENDPOINTS, AuthOutput } from '@contract/auth-endpoints.ts';
import { withSession } from '@/shared/api/call.ts';
import { request } from '@/shared/api/request.ts';

async function post<T>(path: string, body: unknown = {}): Promise<T> {
  return (await request(`/api/auth${path}`, { body })).body as T;
}

async function get<T>(path: string): Promise<T> {
  return (await request(`/api/auth${path}`, { method: 'GET' })).body as T;
}

export type Passkey = AuthOutput<typeof AUTH_ENDPOINTS.listUserPasskeys>[number];
export type SignInAnswer = AuthOutput<typeof AUTH_ENDPOINTS.signInEmail>;

export const auth = {
  signIn: (email: string, password: string, rememberMe: boolean) =>
    post<SignInAnswer>('/sign-in/email', { email, password, rememberMe }),
  verifyTotp: (code: string, trustDevice: boolean) => post('/two-factor/verify-totp', { code, trustDevice }),
  verifyBackupCode: (code: string) => post('/two-factor/verify-backup-code', { code }),
  enableTwoFactor: (password: string) =>
    withSession(() => post<{ totpURI: string; backupCodes: string[] }>('/two-factor/enable', { password })),
  disableTwoFactor: (password: string) => withSession(() => post('/two-factor/disable', { password })),
  changePassword: (currentPassword: string, newPassword: string) =>
    withSession(() => post('/change-password', { currentPassword, newPassword, revokeOtherSessions: true })),
  passkeyAuthenticateOptions: () => get<object>('/passkey/generate-authenticate-options'),
  passkeyAuthenticate: (response: unknown) => post('/passkey/verify-authentication', { response }),
  passkeyRegisterOptions: () => withSession(() => get<object>('/passkey/generate-register-options')),
  passkeyRegister: (response: unknown, name: string) =>
    post<Passkey>('/passkey/verify-registration', { response, name }),
  passkeys: () => withSession(() => get<Passkey[]>('/passkey/list-user-passkeys')),
  deletePasskey: (id: string) => withSession(() => post('/passkey/delete-passkey', { id })),
};
