import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  SERVICE_ACCOUNT_NOT_FOUND: entry(404, 'There is no such service account.'),
  SERVICE_ACCOUNT_KEY_NOT_FOUND: entry(404, 'The service account has no such key.'),
  SERVICE_ACCOUNT_NAME_TAKEN: entry(409, 'Another service account has this name.'),
  SERVICE_ACCOUNT_KEY_LIMIT: entry(409, 'The service account has as many live keys as it may have.'),
  SCOPE_REQUIRED: entry(403, 'The service account lacks the scope in data.scope.'),
  SERVICE_ACCOUNT_FORBIDDEN: entry(403, 'Service accounts may not call this procedure.'),
} satisfies ErrorEntries;
