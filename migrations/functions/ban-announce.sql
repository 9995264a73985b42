-- version 1
-- Gives numbers to bans that this transaction has written, and records those that nodes are told of: shared or lifted
-- ones. Answers the last number recorded, null for none. The feed's lock is taken here, after all locks of rows, and the
-- numbers under it; the transaction is to end soon after.
create or replace function ban_announce(p_ids text[], out epoch bigint, out seq bigint)
language plpgsql as $$
declare
  told record;
begin
  perform pg_advisory_xact_lock(1398162179, 1);
  with numbered as (
    update ban b set seq = nextval('ban_seq') where b.id = any(p_ids)
    returning b.seq, b.id, coalesce(b.cluster_id, '') as cluster, b.expires_at + interval '1 hour' as keep,
      b.distributed or b.lifted_at is not null as told
  )
  select array_agg(n.seq order by n.seq) as seqs, array_agg(n.id order by n.seq) as ids,
      array_agg(n.cluster order by n.seq) as clusters, array_agg(n.keep order by n.seq) as keeps, max(n.seq) as last
    into told from numbered n where n.told;
  if told.last is not null then
    perform ban_record(told.seqs, told.ids, told.clusters, told.keeps);
    seq := told.last;
    epoch := (select s.epoch from console_state s);
  end if;
end $$;
