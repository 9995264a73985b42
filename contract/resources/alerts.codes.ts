import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  ALERT_CHANNEL_NOT_FOUND: entry(404, 'This alert channel does not exist.'),
  ALERT_CHANNEL_LIMIT: entry(409, 'There are `data.limit` alert channels already. Delete one first.'),
  ALERT_SEND_FAILED: entry(502, 'The test message was not delivered; `data.reason` says why.'),
  ALERT_SMTP_NOT_CONFIGURED: entry(412, 'No mail server is set. Save the SMTP settings first.'),
  ALERT_SUBSCRIPTION_NOT_FOUND: entry(404, 'This alert subscription does not exist.'),
  ALERT_SUBSCRIPTION_EXISTS: entry(409, 'The channel has a subscription already. Change that one.'),
  SMTP_PASSWORD_REQUIRED: entry(
    400,
    'The password is needed again: `host`, `port`, `secure`, `username` or `ca` changed. Send `password`.',
  ),
  SMTP_CA_INVALID: entry(400, '`ca` is not a list of certificates in PEM.'),
} satisfies ErrorEntries;
