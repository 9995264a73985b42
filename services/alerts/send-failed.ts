import type { SendFailure } from '../../contract/resources/alerts.ts';

/** A message was not delivered, as far as anybody knows. */
export class SendFailed extends Error {
  readonly reason: SendFailure;

  constructor(reason: SendFailure, cause?: unknown) {
    super(`alert message: ${reason}`, { cause });
    this.name = 'SendFailed';
    this.reason = reason;
  }
}
