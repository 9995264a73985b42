// Credentials of every DNS provider are kept in one way: fields by the key that the provider's adapter gives them.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    alter table dns_credential drop constraint dns_credential_provider_check;
    alter table dns_credential add constraint dns_credential_provider_check check (provider ~ '^[a-z0-9]{1,32}$');
    update dns_credential set settings = jsonb_build_object(
      'nameservers', coalesce(settings->'nameservers', '[]'),
      'fields', case provider
        when 'webhook' then jsonb_build_object('url', settings->'url')
        else jsonb_build_object('server', settings->'server', 'tsig_key_name', settings->'keyName',
          'tsig_algorithm', settings->'algorithm')
      end);
  `);
}
