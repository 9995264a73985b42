/** Why a backup cannot be made, read or restored; the message is the whole explanation and contains no secret. */
export class BackupError extends Error {
  override readonly name = 'BackupError';
  readonly code: BackupProblem;

  constructor(code: BackupProblem, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export type BackupProblem =
  | 'damaged'
  | 'newer'
  | 'wrong_key'
  | 'key_missing'
  | 'bad_key'
  | 'disk_full'
  | 'file_exists'
  | 'file_unreadable'
  | 'not_empty'
  | 'busy'
  | 'other_master_key'
  | 'database';

export function damaged(what: string): BackupError {
  return new BackupError('damaged', `The backup is damaged or incomplete: ${what}. Use another backup.`);
}
