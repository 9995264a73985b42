import type { ServiceSchema } from 'moleculer';
import { enrollmentTokens } from '../../contract/resources/enrollment-tokens.ts';
import { ensureCertificateAuthority } from '../../mixins/certificate-authority.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { createEnrollmentToken, getEnrollmentToken } from './enrollment-tokens.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'enrollment',
  mixins: [
    contractService([
      implement(enrollmentTokens.create, (input, call) => createEnrollmentToken(runtime, input, call)),
      implement(enrollmentTokens.get, (input) => getEnrollmentToken(runtime, input)),
    ]),
  ],
  async started() {
    await ensureCertificateAuthority(runtime);
  },
});
