/** What features/<name>/words/<locale>.json can hold, and where it belongs. */
export interface Words {
  /** `shared.errors` by code. */
  errors?: Record<string, string>;
  /** `shared.faults` by what an error has as `reason`, as part of its sentence. */
  faults?: Record<string, string>;
  /** `contract.audit` by action. */
  audit?: Record<string, Record<string, string>>;
  /** `contract.reason` by reason. */
  reason?: Record<string, string>;
  /** `contract.job` by kind of long job. */
  job?: Record<string, string>;
  /** `attention.kind` by kind. */
  attention?: Record<string, string>;
}
