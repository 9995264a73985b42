// Who calls and what comes back beside the output: the part of a request that every action sees.

/** Who did it (specification: Audit; actor types of the audit log). anonymous: a caller who has not signed in. */
export interface Actor {
  type: 'user' | 'api_key' | 'service_account' | 'node' | 'system' | 'anonymous';
  id: string | null;
  /** Empty for anonymous. */
  name: string;
}

/** Claim of an idempotency record, completed inside the action's transaction. */
export interface IdempotencyClaim {
  namespace: string;
  key: string;
  attempt: number;
}

export interface Call {
  actor: Actor;
  /** Client address, null for the console's own work. */
  ip: string | null;
  userAgent: string | null;
  requestId: string;
  idempotency: IdempotencyClaim | null;
  /** What was published, for X-Svc-Change: `<cluster>=<revision>` or `ban=<epoch>:<seq>`. */
  changes: string[];
  /** performance.now() after which the caller may have its answer: nothing begins then. Without it there is no end. */
  beginsBefore?: number;
  /** A key or session ended: the answer waits until no gateway takes it any more. */
  credentialsEnded?: boolean;
}

/** The call of the console's own work: jobs, start-up. */
export function systemCall(name: string): Call {
  return {
    actor: { type: 'system', id: null, name },
    ip: null,
    userAgent: null,
    requestId: name,
    idempotency: null,
    changes: [],
  };
}
