// A browser at the sign-in endpoints that holds every answer against the contract: its shape, or its error code.
import { Ajv, type ValidateFunction } from 'ajv';
import * as formats from 'ajv-formats';
import { type Answer, ConsoleClient } from '../../bin/lib/console-client.ts';
import { AUTH_ENDPOINTS, type AuthEndpoint } from '../../contract/auth-endpoints.ts';
import { GENERAL_CODES } from '../../contract/errors.ts';

const ajv = new Ajv({ strict: false, allErrors: true });
(formats.default as unknown as (ajv: Ajv) => void)(ajv);

const validators = new Map<AuthEndpoint, ValidateFunction>(
  Object.values(AUTH_ENDPOINTS).map((endpoint) => [endpoint, ajv.compile(endpoint.output)]),
);

export class BrowserClient extends ConsoleClient {
  override async auth<T = unknown>(method: 'GET' | 'POST', path: string, body?: unknown): Promise<Answer<T>> {
    const answer = await super.auth<T>(method, path, body);
    for (const [endpoint, validate] of validators) {
      if (endpoint.method === method && endpoint.path === path) hold(endpoint, validate, answer);
    }
    return answer;
  }
}

function hold(endpoint: AuthEndpoint, validate: ValidateFunction, { status, body }: Answer): void {
  if (status === 200) {
    if (!validate(body)) throw new Error(`${endpoint.path} answers ${ajv.errorsText(validate.errors)}`);
    return;
  }
  const { code } = body as { code: string };
  const limited = endpoint.limit === null ? [] : ['SIGN_IN_RATE_LIMITED'];
  const declared: readonly string[] = [...GENERAL_CODES, 'CROSS_SITE_REQUEST', ...limited, ...endpoint.errors];
  if (!declared.includes(code)) throw new Error(`${endpoint.path} answers ${code}, which it does not declare`);
}
