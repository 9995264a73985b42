/**
 * Why an evaluation failed: a result that is too long, a pattern that costs too much on this value, or a value that
 * cannot be used where it is for.
 */
export type FailureReason = 'result_too_long' | 'pattern_budget' | 'unusable_result';

/** Ends an evaluation: the request gets 503 policy-unavailable, or a header is left as it is. */
export class EvaluationFailure extends Error {
  readonly reason: FailureReason;

  constructor(reason: FailureReason) {
    super(reason);
    this.reason = reason;
  }
}
