import { acmeDirectory } from '../../../contract/resources/acme-directory.ts';
import { certificateRequests } from '../../../contract/resources/certificate-requests.ts';
import { httpsCheck } from '../../../contract/resources/https-check.ts';
import { type Implementation, implement } from '../../../mixins/contract-service.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { getAcmeDirectory, setAcmeDirectory } from './directory-settings.ts';
import { checkHttps } from './https-check.ts';
import { certificateProgress } from './progress.ts';
import { rehearseCertificate, renewCertificate, requestCertificate } from './request.ts';

/** What people ask of authorities, as procedures of the certificates service. */
export function acmeProcedures(runtime: Runtime): Implementation[] {
  return [
    implement(certificateRequests.request, (input, call) => requestCertificate(runtime, input, call)),
    implement(certificateRequests.rehearse, (input, call) => rehearseCertificate(runtime, input, call)),
    implement(certificateRequests.renew, (input, call) => renewCertificate(runtime, input, call)),
    implement(certificateRequests.progress, (input) => certificateProgress(runtime, input)),
    implement(httpsCheck.check, (input) => checkHttps(runtime, input)),
    implement(acmeDirectory.get, () => getAcmeDirectory(runtime)),
    implement(acmeDirectory.set, (input, call) => setAcmeDirectory(runtime, input, call)),
  ];
}
