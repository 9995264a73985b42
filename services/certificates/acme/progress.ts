import { fail } from '../../../contract/errors.ts';
import type { Input } from '../../../contract/procedure.ts';
import {
  type CertificateProgress,
  type certificateRequests,
  ORDER_STEPS,
} from '../../../contract/resources/certificate-requests.ts';
import { orderedCertificate } from '../../../models/certificates/acme-certificate.ts';
import { AcmeOrder, type OrderErrorParams } from '../../../models/certificates/acme-order.ts';
import { certificateById } from '../../../models/certificates/certificate.ts';
import type { Runtime } from '../../../runtime/runtime.ts';

type StepState = CertificateProgress['steps'][number]['state'];

/** Throws CERTIFICATE_NOT_FOUND, CERTIFICATE_NOT_ORDERED. */
export async function certificateProgress(
  { pools }: Runtime,
  { id }: Input<typeof certificateRequests.progress>,
): Promise<CertificateProgress> {
  // Of one moment: what ends an order says in both when the next one begins.
  const [row, order] = await pools.api.transaction(
    async (sql) => [await orderedCertificate(sql, id), await AcmeOrder.byCertificate(sql, id)] as const,
    { isolationLevel: 'repeatable read', readOnly: true },
  );
  if (!row) return fail((await certificateById(pools.api, id)) ? 'CERTIFICATE_NOT_ORDERED' : 'CERTIFICATE_NOT_FOUND');
  // The order that was asked for takes the place of the former one in a second.
  if (!order || row.status === 'pending') return notBegun(id, row.renewAt);
  const running = order.nextAt !== null;
  return {
    certificateId: id,
    state: running ? 'running' : order.state === 'done' ? 'done' : 'failed',
    steps: stepsOf(order),
    names: namesOf(order),
    error: order.error === null ? null : { code: order.error, params: presentParams(order.errorParams) },
    startedAt: order.startedAt.toISOString(),
    finishedAt: order.finishedAt?.toISOString() ?? null,
    nextTryAt: (order.nextAt ?? row.renewAt)?.toISOString() ?? null,
  };
}

/** Of an order that begins then. */
export function notBegun(certificateId: string, at: Date | null): CertificateProgress {
  return {
    certificateId,
    state: 'waiting',
    steps: ORDER_STEPS.map((step) => ({ step, state: 'waiting' })),
    names: [],
    error: null,
    startedAt: null,
    finishedAt: null,
    nextTryAt: at?.toISOString() ?? null,
  };
}

function stepsOf({ state, failedStep }: AcmeOrder): CertificateProgress['steps'] {
  const reached = ORDER_STEPS.indexOf((failedStep ?? state) as (typeof ORDER_STEPS)[number]);
  const here: StepState = failedStep === null ? 'running' : 'failed';
  return ORDER_STEPS.map((step, index) => {
    if (state === 'done' || index < reached) return { step, state: 'done' };
    return { step, state: index === reached ? here : 'waiting' };
  });
}

/** Until the authority has said what it wants to see, the names are those asked for. */
function namesOf({ state, names, authorizations }: AcmeOrder): CertificateProgress['names'] {
  const known = authorizations.filter(({ name }) => name !== '');
  if (state === 'done' || known.length === 0) {
    return names.map((name) => ({ name, state: state === 'done' ? 'valid' : 'waiting', error: null }));
  }
  return known.map(({ name, wildcard, state, error }) => ({ name: wildcard ? `*.${name}` : name, state, error }));
}

function presentParams({ names, nodes, until }: OrderErrorParams) {
  return {
    names: Array.isArray(names) ? names : [],
    nodes: Array.isArray(nodes) ? nodes : [],
    until: typeof until === 'string' ? until : null,
  };
}
