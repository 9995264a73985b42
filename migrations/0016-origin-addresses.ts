// Which sites have an origin at an address: asked at every keystroke while a ban is typed, so it is found by an index and
// not in the origins of all sites.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- Addresses among site.origins; host names are not resolved here.
    create table site_origin_address (
      site_id text not null references site on delete cascade,
      address inet not null,
      primary key (site_id, address)
    );
    create index site_origin_address_range on site_origin_address using gist (address inet_ops);
    insert into site_origin_address (site_id, address)
      select distinct s.id, (o.origin->>'address')::inet
        from site s cross join lateral jsonb_array_elements(s.origins) as o(origin)
       where pg_input_is_valid(o.origin->>'address', 'inet');
  `);
}
