import type { Capability } from '../../../contract/capabilities.ts';
import { configPart } from '../config/config.part.ts';
import { type EntryReader, entryReaderPart } from '../lib/part.ts';
import { capabilitiesPart } from '../run/capabilities.part.ts';
import { HTTPS_KIND } from './certificate-uses.ts';
import { Certificates } from './certificates.ts';

const HTTPS: Capability = 'https-v1';

/** The pack of certificates, which the entries of the configuration name. */
export const certificatesPart = entryReaderPart<EntryReader>({
  name: 'certificates',
  make: (node) => {
    const { capabilities } = node.of(capabilitiesPart);
    const certificates = new Certificates({
      path: node.options.paths.certificates,
      log: node.log,
      channel: node.reached,
      isNeeded: () => capabilities.has([HTTPS]),
      formerEntries: (kind) => node.of(configPart).store.formerBodies(kind),
      grew: () => node.tell({ case: 'certificatesChanged' }),
      changed: node.reportSoon,
    });
    return {
      entries: certificates.observer,
      ready: (entries) => certificates.ready(entries?.filter(({ kind }) => kind === HTTPS_KIND).map(({ id }) => id)),
      status: (report) => {
        report.shown.certificates = certificates.view;
        report.problem('feature', certificates.message);
      },
      event: (event) => {
        if (event.case === 'connected') certificates.onConnected();
        else if (event.case === 'dataPlaneStatus') certificates.onAble();
        else if (event.case === 'configApplied') certificates.onApplied();
      },
      maintain: () => certificates.maintain(),
      stop: () => certificates.stop(),
      close: () => certificates.close(),
    };
  },
});
