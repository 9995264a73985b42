// The certificate is checked as one that somebody sends, and takes the place of the former.
import { createPrivateKey } from 'node:crypto';
import type { CertificateFailure } from '../../../../contract/certificate-failures.ts';
import { errorCodeOf } from '../../../../contract/errors.ts';
import { requestableName, uncoveredDomains } from '../../../../contract/scalars/certificate-coverage.ts';
import { setIssued, setRehearsed } from '../../../../models/certificates/acme-certificate.ts';
import { holdLease, LeaseLost, orderKeyPlace, saveOrder } from '../../../../models/certificates/acme-order.ts';
import {
  askForNames,
  type CertificateRow,
  lockCertificate,
  replaceMaterial,
} from '../../../../models/certificates/certificate.ts';
import { type CertificateMaterial, checkChain } from '../../../../models/certificates/certificate-check.ts';
import { askableNames } from '../../../../models/certificates/certificate-names.ts';
import { bindCertificate } from '../../../../models/sites/publish-https.ts';
import { clusterOfSite, lockSite, type SiteRow } from '../../../../models/sites/site.ts';
import { namesOfCertificates } from '../../../../models/sites/site-https.ts';
import { publishRequested } from '../../../../pipeline/publish-requested.ts';
import { systemCall } from '../../../../runtime/call.ts';
import { type Tx, write } from '../../../../runtime/write.ts';
import { endAnswers } from '../answers.ts';
import { OrderFailed, renewalTime } from '../failure.ts';
import { nextCheck } from '../renewal-times.ts';
import type { Next, StepContext } from '../step.ts';

/** Refusals of an upload that say more than that the certificate is no good. */
const TOLD: Readonly<Record<string, string>> = {
  CERTIFICATE_CHAIN_EXPLICIT_CURVE: 'certificate_chain_explicit_curve',
  CERTIFICATE_KEY_EXPLICIT_CURVE: 'certificate_key_explicit_curve',
};

export async function download(context: StepContext): Promise<Next> {
  const { runtime, order, open } = context;
  const { client } = await open();
  const { text } = await client.post(order.certificateUrl!, null);
  const privateKey = createPrivateKey({
    key: runtime.sealer.open(order.privateKey!, orderKeyPlace(order.certificateId)),
    format: 'der',
    type: 'pkcs8',
  });
  const material = checked(text, privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(), context.now);
  const missing = order.names.filter((name) => !material.names.includes(name));
  if (missing.length > 0 || material.names.length > order.names.length) {
    throw new OrderFailed('issued_names_mismatch', { names: missing });
  }
  if (context.certificate.rehearsal) {
    await endRehearsal(context);
    return { to: 'done', saved: true };
  }
  const renewalInfo = client.directory.renewalInfo !== null;
  const call = systemCall('acme');
  const { bindSiteId } = context.certificate;
  const clusterId = bindSiteId === null ? undefined : await clusterOfSite(runtime.pools.api, bindSiteId);
  const clusterIds = await write(runtime, call, clusterId === undefined ? {} : { clusterId }, async (tx) => {
    // Sites are locked before certificates by whoever locks both.
    const site = bindSiteId === null ? undefined : await lockSite(tx.sql, bindSiteId);
    await holdLease(tx.sql, order);
    const certificate = await lockCertificate(tx.sql, order.certificateId);
    if (!certificate) throw new LeaseLost();
    const replaced = await replaceMaterial(tx, runtime.sealer, certificate, material);
    const lastError = site ? await bind(tx, site, certificate) : null;
    const { autoRenew } = certificate;
    const renewAt = autoRenew ? renewalTime(material.notBefore, material.notAfter) : null;
    await setIssued(tx.sql, certificate.id, { names: order.names, renewAt, lastError });
    await saveOrder(tx.sql, order, {
      ...over(tx.now),
      renewalCheckAt: autoRenew && renewalInfo ? nextCheck(tx.now, tx.now) : null,
    });
    await endAnswers(tx, order);
    return replaced;
  });
  await publishRequested(runtime, call, clusterIds);
  return { to: 'done', saved: true };
}

/**
 * Gives the site the certificate. Where a node lacks a capability, the site stays as it is, because no operator decided
 * that; the certificate is kept and says why.
 */
async function bind(tx: Tx, site: SiteRow, certificate: CertificateRow): Promise<CertificateFailure | null> {
  try {
    await bindCertificate(tx, site.id, certificate.id);
  } catch (error) {
    if (errorCodeOf(error) !== 'NODE_CAPABILITY_REQUIRED') throw error;
    return 'node_capability_required';
  }
  await askForUncovered(tx, site, certificate);
  return null;
}

/** What the site was called meanwhile is in no certificate: nothing but this one asks for it. */
async function askForUncovered(tx: Tx, { id, domains }: SiteRow, certificate: CertificateRow): Promise<void> {
  const uncovered = uncoveredDomains(domains, await namesOfCertificates(tx.sql, id));
  const names = askableNames(
    certificate,
    uncovered.flatMap((domain) => requestableName(domain) ?? []),
  );
  if (names.length > 0) await askForNames(tx.sql, certificate.id, names, tx.now);
}

/** The certificate was as it should be; it and its key are gone. */
async function endRehearsal({ runtime, order }: StepContext): Promise<void> {
  await write(runtime, systemCall('acme'), {}, async (tx) => {
    await holdLease(tx.sql, order);
    await setRehearsed(tx.sql, order.certificateId);
    await saveOrder(tx.sql, order, { ...over(tx.now), certificateUrl: null, csr: null });
    await endAnswers(tx, order);
  });
}

function over(now: Date) {
  const cleared = { nextAt: null, privateKey: null, error: null, errorParams: {} };
  return { ...cleared, state: 'done' as const, finishedAt: now, stepAt: now };
}

function checked(chainPem: string, keyPem: string, now: Date): CertificateMaterial {
  try {
    return checkChain(chainPem, keyPem, now);
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === undefined) throw error;
    throw new OrderFailed(TOLD[code] ?? 'issued_certificate_invalid');
  }
}
