/** Ends an evaluation that reads what the made-up request does not say. It is no failure: a node would know it. */
export class UnknownValue extends Error {
  /** The field as it is written. */
  readonly field: string;

  constructor(field: string) {
    super(field);
    this.field = field;
  }
}

/** Ends a run whose rules cost more than one may: what comes after is not run. */
export class TooCostly extends Error {}
