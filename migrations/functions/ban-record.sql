-- version 1
-- Records changes of bans under their numbers; a cluster '' concerns all.
create or replace function ban_record(p_seqs bigint[], p_bans text[], p_clusters text[], p_keep timestamptz[]) returns void
language plpgsql as $$
begin
  insert into ban_change (seq, ban_id, cluster_id, keep_until)
    select * from unnest(p_seqs, p_bans, p_clusters, p_keep);
  insert into ban_head as h (cluster_id, seq)
    select c.cluster, max(c.seq) from unnest(p_clusters, p_seqs) as c(cluster, seq) group by c.cluster order by 1
    on conflict (cluster_id) do update set seq = greatest(h.seq, excluded.seq);
  insert into outbox (topic, key)
    select distinct 'bans', case c when '' then '*' else c end from unnest(p_clusters) as c;
end $$;
