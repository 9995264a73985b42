import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  SERVICE_ACCOUNT_NOT_FOUND: entry(404, 'This service account does not exist.'),
  SERVICE_ACCOUNT_KEY_NOT_FOUND: entry(404, 'The service account has no key with this ID.'),
  SERVICE_ACCOUNT_NAME_TAKEN: entry(409, 'Another service account already has this `name`. Choose another one.'),
  SERVICE_ACCOUNT_KEY_LIMIT: entry(409, 'The limit of active keys per service account is reached. Revoke one first.'),
  SCOPE_REQUIRED: entry(403, 'The service account lacks the scope `data.scope`. Add it to `scopes` of the account.'),
  SERVICE_ACCOUNT_FORBIDDEN: entry(403, 'Service accounts cannot call this procedure. Use an access key.'),
} satisfies ErrorEntries;
