/** What features/<name>/words/<locale>.json can hold, and where it belongs. */
export interface Words {
  /** `shared.errors` by code. */
  errors?: Record<string, string>;
  /** `contract.audit` by action. */
  audit?: Record<string, Record<string, string>>;
  /** `contract.reason` by reason. */
  reason?: Record<string, string>;
  /** `attention.kind` by kind. */
  attention?: Record<string, string>;
}
