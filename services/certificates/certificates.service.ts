import type { ServiceSchema } from 'moleculer';
import { certificates } from '../../contract/resources/certificates.ts';
import { PUBLISHING } from '../../mixins/belongings.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { acmeProcedures } from './acme/procedures.ts';
import { certificateNodes } from './certificate-nodes.ts';
import { certificateSettings } from './certificate-settings.ts';
import { dnsCredentialProcedures } from './dns-credentials/procedures.ts';
import { getCertificate, listCertificates } from './list-certificates.ts';
import { deleteCertificate, replaceCertificate, uploadCertificate } from './write-certificates.ts';

export const roles: Role[] = ['app'];
export const belongings = [...PUBLISHING, 'acme-fanout'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'certificates',
  mixins: [
    contractService([
      implement(certificates.list, (input) => listCertificates(runtime, input)),
      implement(certificates.get, (input) => getCertificate(runtime, input)),
      implement(certificates.nodes, (input) => certificateNodes(runtime, input)),
      implement(certificates.upload, (input, call) => uploadCertificate(runtime, input, call)),
      implement(certificates.replace, (input, call) => replaceCertificate(runtime, input, call)),
      implement(certificates.delete, (input, call) => deleteCertificate(runtime, input, call)),
      implement(certificates.settings, () => certificateSettings(runtime)),
      ...acmeProcedures(runtime),
      ...dnsCredentialProcedures(runtime),
    ]),
  ],
});
