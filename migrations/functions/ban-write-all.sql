-- version 1
-- Writes checked bans in the order given and answers the number of each. renews: the ban of that id is active and
-- gets another reason and end.
create or replace function ban_write_all(p_bans jsonb, p_now timestamptz) returns table (epoch bigint, seq bigint)
language plpgsql as $$
declare
  ban record;
begin
  for ban in
    select * from jsonb_to_recordset(p_bans) as b(id text, renews boolean, site text, cluster text, cidr cidr,
      reason text, created_by jsonb, expires_at timestamptz)
  loop
    if ban.renews then
      return query select w.epoch, w.seq from ban_renew(ban.id, ban.reason, ban.expires_at) w;
    else
      return query select w.epoch, w.seq from ban_insert(ban.id, ban.site, ban.cluster, ban.cidr, ban.reason,
        ban.created_by, p_now, ban.expires_at) w;
    end if;
  end loop;
end $$;
