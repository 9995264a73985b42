-- version 1
-- How a site challenges its visitors, with what applies to all sites; null settings: the defaults. p_lock: takes the site's
-- lock first, which writers hold until the end of their transactions, and reads then: only a statement that starts after
-- the lock is had sees what the holder before committed. No row without such a site.
create or replace function site_protection_view(p_site text, p_lock boolean)
returns table (id text, cluster_id text, name text, settings jsonb, updated_at timestamptz, cc_template jsonb, platform jsonb)
language plpgsql as $$
begin
  if p_lock then perform from site s where s.id = p_site for update; end if;
  return query
    select s.id, s.cluster_id, s.name, p.settings, coalesce(p.updated_at, s.created_at),
      (select t.value from setting t where t.key = 'cc_template'), (select t.value from setting t where t.key = 'protection')
      from site s left join site_protection p on p.site_id = s.id where s.id = p_site;
end $$;
