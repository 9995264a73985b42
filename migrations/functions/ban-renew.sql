-- version 1
-- Gives an active manual ban another reason and end.
create or replace function ban_renew(p_id text, p_reason text, p_expires timestamptz, out epoch bigint, out seq bigint)
language plpgsql as $$
declare
  cluster text;
  keep timestamptz;
begin
  select n.epoch, n.seq into epoch, seq from ban_next() n;
  -- A node may still hold the earlier copy when it ends later.
  select greatest(b.expires_at, p_expires) + interval '1 hour' into keep from ban b where b.id = p_id;
  update ban b set reason = p_reason, expires_at = p_expires, seq = ban_renew.seq
   where b.id = p_id returning coalesce(b.cluster_id, '') into cluster;
  perform ban_record(array[seq], array[p_id], array[cluster], array[keep]);
end $$;
