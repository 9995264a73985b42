/** Why an evaluation failed: a result that is too long, or a pattern that costs too much on this value. */
export type FailureReason = 'result_too_long' | 'pattern_budget';

/** Ends an evaluation: the request gets 503 policy-unavailable, or a header is left as it is. */
export class EvaluationFailure extends Error {
  readonly reason: FailureReason;

  constructor(reason: FailureReason) {
    super(reason);
    this.reason = reason;
  }
}
