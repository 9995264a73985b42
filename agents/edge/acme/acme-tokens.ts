// What certificate authorities are to be answered, in memory only: a restart asks the console for everything.
import { create } from '@bufbuild/protobuf';
import {
  type AcmeBatch,
  type AcmePosition,
  AcmePositionSchema,
  type AcmeToken,
  type GetAcmeTokensResponse,
} from '../../../proto/gen/svc/node/v1/certificates_pb.js';

/** Of more the newest are kept, as many as the console answers at most. */
const MAX_TOKENS = 10_000;

export class AcmeTokens {
  private tokens = new Map<string, AcmeToken>();
  private reached = create(AcmePositionSchema);

  /** Epoch 0: the console has not said anything yet. */
  get position(): AcmePosition {
    return this.reached;
  }

  get size(): number {
    return this.tokens.size;
  }

  /** Those that end after `nowMs`, by the console's clock; the others are forgotten. */
  live(nowMs: number): AcmeToken[] {
    for (const [key, token] of this.tokens) if (Number(token.expiresAtMs) <= nowMs) this.tokens.delete(key);
    return [...this.tokens.values()];
  }

  apply({ epoch, to, upserts, removed }: AcmeBatch): void {
    for (const token of removed) this.tokens.delete(tokenKey(token));
    for (const token of upserts) this.put(token);
    this.reached = create(AcmePositionSchema, { epoch, sequence: to });
  }

  replace({ tokens }: GetAcmeTokensResponse, position: AcmePosition): void {
    this.tokens = new Map();
    for (const token of tokens) this.put(token);
    this.reached = position;
  }

  private put(token: AcmeToken): void {
    const key = tokenKey(token);
    this.tokens.delete(key);
    this.tokens.set(key, token);
    for (const oldest of this.tokens.keys()) {
      if (this.tokens.size <= MAX_TOKENS) break;
      this.tokens.delete(oldest);
    }
  }
}

export function tokenKey({ host, token }: Pick<AcmeToken, 'host' | 'token'>): string {
  return `${host}/${token}`;
}
