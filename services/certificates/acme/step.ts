// One step of an order: what it is given, and what it answers. Every step may be done again at any time: it looks first
// at what is there.
import type { AcmeAccount } from '../../../models/certificates/acme-account.ts';
import type { OrderedCertificate } from '../../../models/certificates/acme-certificate.ts';
import type { AcmeOrder, OrderPatch, OrderState } from '../../../models/certificates/acme-order.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { AcmeClient, DirectoryAt } from './protocol/client.ts';
import type { Tools } from './tools.ts';

export interface StepContext {
  runtime: Runtime;
  tools: Tools;
  order: AcmeOrder;
  certificate: OrderedCertificate;
  /** Opened at first need; throws OrderFailed. */
  open(): Promise<Opened>;
  now: Date;
  signal: AbortSignal;
}

export interface Opened {
  client: AcmeClient;
  account: AcmeAccount;
  at: DirectoryAt;
}

/** What follows. `saved`: the step has written everything itself. */
export interface Next {
  to: OrderState;
  patch?: OrderPatch;
  /** Not before this many milliseconds. */
  waitMs?: number;
  saved?: boolean;
}

export type Step = (context: StepContext) => Promise<Next>;

/** How long the authority wants to be left alone, within bounds. */
export function pause(retryAt: Date | null, now: Date, otherwiseMs: number): number {
  const asked = retryAt === null ? otherwiseMs : retryAt.getTime() - now.getTime();
  return Math.min(Math.max(asked, 500), 60_000);
}
