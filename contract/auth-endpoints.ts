// The sign-in endpoints under /api/auth: exactly these paths and methods exist. They are not procedures: they take and
// answer cookies, and no key reaches them. Secrets of sessions travel in cookies only, never in a body.
import Type, { type Static, type TObject, type TSchema } from 'typebox';
import type { ErrorCode } from './errors.ts';
import { Password } from './resources/system.ts';
import { Id, Input, Nullable, Timestamp } from './scalars/common.ts';

/** How long what a cookie stands for is good. */
export const LIFETIME_SECONDS = { session: 7 * 24 * 3600, secondStep: 600, trustedDevice: 30 * 24 * 3600 } as const;

/** Attempts are counted per client address and kind, in production. */
export type AttemptKind = 'sign-in' | 'two-factor' | 'passkey' | 'password' | 'setup';

export interface AuthEndpoint {
  /** Name of the action. */
  readonly name: string;
  readonly method: 'GET' | 'POST';
  /** Below /api/auth. */
  readonly path: string;
  /** `session`: a live session cookie, else UNAUTHORIZED. */
  readonly access: 'public' | 'session';
  /** The count that limits it: 3 in 10 s of a client address, else SIGN_IN_RATE_LIMITED; null: not limited. */
  readonly limit: AttemptKind | null;
  readonly input: TObject;
  readonly output: TSchema;
  /** Audit action of its success; null for what changes nothing that lasts. */
  readonly audit: string | null;
  /** Codes it can answer beyond the general ones, CROSS_SITE_REQUEST and, where limited, SIGN_IN_RATE_LIMITED. */
  readonly errors: readonly ErrorCode[];
}

const User = Type.Object({
  id: Id,
  name: Type.String(),
  email: Type.String(),
  twoFactorEnabled: Type.Boolean(),
});

const Session = Type.Object({
  session: Type.Object({ id: Id, userId: Id, createdAt: Timestamp, expiresAt: Timestamp }),
  user: User,
});

const SignedIn = Type.Object({ user: User });
const Done = Type.Object({ status: Type.Boolean() });

/** Any password that was ever accepted; rules for new ones are in {@link Password}. */
const KnownPassword = Type.String({ minLength: 1, maxLength: 128 });

const TrustDevice = Type.Optional(
  Type.Boolean({ default: false, description: 'Skips the second step in this browser for 30 days.' }),
);

const PasskeyName = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: '\\S',
  description: 'At least one character that is not a space.',
});

export const Passkey = Type.Object({
  id: Id,
  name: Type.String(),
  createdAt: Timestamp,
  lastUsedAt: Nullable(Timestamp),
  deviceType: Type.Union([Type.Literal('singleDevice'), Type.Literal('multiDevice')], {
    description: 'multiDevice: the passkey may be synchronized between devices.',
  }),
  backedUp: Type.Boolean(),
});

const Base64Url = (maxLength: number) => Type.String({ pattern: '^[A-Za-z0-9_-]+$', maxLength });

// What browsers write (PublicKeyCredential.toJSON); members they may add later are left alone.
const Credential = <T extends TObject>(response: T) =>
  Type.Object({
    id: Base64Url(1400),
    rawId: Base64Url(1400),
    type: Type.Literal('public-key'),
    authenticatorAttachment: Type.Optional(Nullable(Type.String({ maxLength: 64 }))),
    clientExtensionResults: Type.Object({}),
    response,
  });

const RegistrationResponse = Credential(
  Type.Object({
    clientDataJSON: Base64Url(16_384),
    attestationObject: Base64Url(65_536),
    transports: Type.Optional(Type.Array(Type.String({ maxLength: 32 }), { maxItems: 16 })),
  }),
);

const AuthenticationResponse = Credential(
  Type.Object({
    clientDataJSON: Base64Url(16_384),
    authenticatorData: Base64Url(16_384),
    signature: Base64Url(16_384),
    userHandle: Base64Url(128),
  }),
);

/** Options for the browser, as `startRegistration` and `startAuthentication` of @simplewebauthn/browser take them. */
const WebAuthnOptions = Type.Object({ challenge: Type.String() });

const endpoint = <const E extends AuthEndpoint>(given: E): E => given;

export const AUTH_ENDPOINTS = {
  /** The session and its user, or null. */
  getSession: endpoint({
    name: 'auth.getSession',
    method: 'GET',
    path: '/get-session',
    access: 'public',
    limit: null,
    input: Input({}),
    output: Nullable(Session),
    audit: null,
    errors: [],
  }),
  /** Signs in, or asks for the second step, which has to follow within ten minutes. */
  signInEmail: endpoint({
    name: 'auth.signInEmail',
    method: 'POST',
    path: '/sign-in/email',
    access: 'public',
    limit: 'sign-in',
    input: Input({
      email: Type.String({ minLength: 1, maxLength: 254 }),
      password: KnownPassword,
      rememberMe: Type.Optional(
        Type.Boolean({ default: true, description: 'false: the session ends when the browser is closed.' }),
      ),
    }),
    output: Type.Union([SignedIn, Type.Object({ twoFactorRedirect: Type.Literal(true) })]),
    audit: 'auth.sign_in',
    errors: ['INVALID_CREDENTIALS'],
  }),
  signOut: endpoint({
    name: 'auth.signOut',
    method: 'POST',
    path: '/sign-out',
    access: 'public',
    limit: null,
    input: Input({}),
    output: Type.Object({ success: Type.Boolean() }),
    audit: null,
    errors: [],
  }),
  /** Ends every other session, every trusted device and every half-way sign-in; this session gets a new cookie. */
  changePassword: endpoint({
    name: 'auth.changePassword',
    method: 'POST',
    path: '/change-password',
    access: 'session',
    limit: 'password',
    input: Input({
      currentPassword: KnownPassword,
      newPassword: Password,
      revokeOtherSessions: Type.Optional(
        Type.Literal(true, { description: 'Only true is accepted: a password change always ends all other sessions.' }),
      ),
    }),
    output: SignedIn,
    audit: 'account.password_change',
    errors: ['INVALID_PASSWORD'],
  }),
  /** A new secret and backup codes, shown once. In force after the first code of the secret (verify-totp). */
  enableTwoFactor: endpoint({
    name: 'auth.enableTwoFactor',
    method: 'POST',
    path: '/two-factor/enable',
    access: 'session',
    limit: 'two-factor',
    input: Input({ password: KnownPassword }),
    output: Type.Object({
      totpURI: Type.String({ description: '`otpauth://` URL for an authenticator app, usually shown as a QR code.' }),
      backupCodes: Type.Array(Type.String(), {
        minItems: 10,
        maxItems: 10,
        description: 'Backup codes, each valid once.',
      }),
    }),
    audit: null,
    errors: ['INVALID_PASSWORD', 'TWO_FACTOR_ENABLED'],
  }),
  disableTwoFactor: endpoint({
    name: 'auth.disableTwoFactor',
    method: 'POST',
    path: '/two-factor/disable',
    access: 'session',
    limit: 'two-factor',
    input: Input({ password: KnownPassword }),
    output: Done,
    audit: 'account.two_factor_disable',
    errors: ['INVALID_PASSWORD'],
  }),
  /** Completes a sign-in that waits for its second step; else puts a secret of two-factor/enable in force. */
  verifyTotp: endpoint({
    name: 'auth.verifyTotp',
    method: 'POST',
    path: '/two-factor/verify-totp',
    access: 'public',
    limit: 'two-factor',
    input: Input({ code: Type.String({ pattern: '^[0-9]{6}$' }), trustDevice: TrustDevice }),
    output: SignedIn,
    audit: 'auth.sign_in',
    errors: ['INVALID_CODE', 'SECOND_STEP_EXPIRED', 'TWO_FACTOR_NOT_PENDING'],
  }),
  verifyBackupCode: endpoint({
    name: 'auth.verifyBackupCode',
    method: 'POST',
    path: '/two-factor/verify-backup-code',
    access: 'public',
    limit: 'two-factor',
    input: Input({ code: Type.String({ minLength: 1, maxLength: 32 }), trustDevice: TrustDevice }),
    output: SignedIn,
    audit: 'auth.sign_in',
    errors: ['INVALID_CODE', 'SECOND_STEP_EXPIRED'],
  }),
  generateRegisterOptions: endpoint({
    name: 'auth.generateRegisterOptions',
    method: 'GET',
    path: '/passkey/generate-register-options',
    access: 'session',
    limit: null,
    input: Input({}),
    output: WebAuthnOptions,
    audit: null,
    errors: ['PASSKEY_LIMIT', 'PASSKEYS_UNAVAILABLE'],
  }),
  verifyRegistration: endpoint({
    name: 'auth.verifyRegistration',
    method: 'POST',
    path: '/passkey/verify-registration',
    access: 'session',
    limit: 'passkey',
    input: Input({ response: RegistrationResponse, name: PasskeyName }),
    output: Passkey,
    audit: 'account.passkey_add',
    errors: ['PASSKEY_REFUSED', 'PASSKEY_LIMIT', 'PASSKEYS_UNAVAILABLE'],
  }),
  /** For a sign-in without an e-mail address: the browser offers the passkeys it has for this console. */
  generateAuthenticateOptions: endpoint({
    name: 'auth.generateAuthenticateOptions',
    method: 'GET',
    path: '/passkey/generate-authenticate-options',
    access: 'public',
    limit: null,
    input: Input({}),
    output: WebAuthnOptions,
    audit: null,
    errors: ['PASSKEYS_UNAVAILABLE'],
  }),
  /** Signs in; there is no second step. */
  verifyAuthentication: endpoint({
    name: 'auth.verifyAuthentication',
    method: 'POST',
    path: '/passkey/verify-authentication',
    access: 'public',
    limit: 'passkey',
    input: Input({ response: AuthenticationResponse }),
    output: Session,
    audit: 'auth.sign_in',
    errors: ['PASSKEY_REFUSED'],
  }),
  listUserPasskeys: endpoint({
    name: 'auth.listUserPasskeys',
    method: 'GET',
    path: '/passkey/list-user-passkeys',
    access: 'session',
    limit: null,
    input: Input({}),
    output: Type.Array(Passkey),
    audit: null,
    errors: [],
  }),
  deletePasskey: endpoint({
    name: 'auth.deletePasskey',
    method: 'POST',
    path: '/passkey/delete-passkey',
    access: 'session',
    limit: null,
    input: Input({ id: Id }),
    output: Done,
    audit: 'account.passkey_delete',
    errors: ['PASSKEY_NOT_FOUND'],
  }),
} as const satisfies Record<string, AuthEndpoint>;

export type AuthInput<E extends AuthEndpoint> = Static<E['input']>;
export type AuthOutput<E extends AuthEndpoint> = Static<E['output']>;
