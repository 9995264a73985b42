// What became of the last use of a credential, records that are being removed, and when authorities want renewals.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- Code of what its last use failed with; null: it went well, or there was none.
    alter table dns_credential add column last_error text;
    create index certificate_dns_credential on certificate ((request->>'dnsCredentialId'))
      where request->>'dnsCredentialId' is not null;

    -- Somebody asks the server to remove it until then at most; who wants it back waits.
    alter table acme_dns_record add column removing_until timestamptz;

    -- What the authority suggested last; null: it suggests nothing.
    alter table acme_order add column renewal_start timestamptz, add column renewal_end timestamptz;
  `);
}
