import type { ServiceSchema } from 'moleculer';
import { enrollmentTokens } from '../../contract/resources/enrollment-tokens.ts';
import { ensureCertificateAuthority } from '../../mixins/certificate-authority.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../mixins/env.ts';
import type { Runtime } from '../../mixins/runtime.ts';
import { EnrollmentToken } from '../../models/enrollment-token.ts';
import { createEnrollmentToken, getEnrollmentToken } from './enrollment-tokens.ts';

export const roles: Role[] = ['app'];

const CLEAN_MS = 3_600_000;

export default (runtime: Runtime): ServiceSchema => {
  let cleaning: NodeJS.Timeout | undefined;
  const clean = async (): Promise<void> => {
    try {
      await EnrollmentToken.deleteOld(runtime.pools.api);
    } catch (err) {
      runtime.log.warn({ err }, 'deleting old enrollment tokens failed');
    }
  };
  return contractService(
    'enrollment',
    [
      implement(enrollmentTokens.create, (input, call) => createEnrollmentToken(runtime, input, call)),
      implement(enrollmentTokens.get, (input) => getEnrollmentToken(runtime, input)),
    ],
    {
      async started() {
        await ensureCertificateAuthority(runtime);
        cleaning = setInterval(clean, CLEAN_MS);
      },
      async stopped() {
        clearInterval(cleaning);
      },
    },
  );
};
