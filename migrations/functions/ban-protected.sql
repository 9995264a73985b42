-- version 1
-- A node address the range covers (of one cluster, or of any with null), else an allow-list entry it overlaps.
create or replace function ban_protected(p_cidr cidr, p_cluster text) returns text
language sql stable as $$
  (select host(address) from node_address
    where address <<= p_cidr and (p_cluster is null or cluster_id = p_cluster) order by 1 limit 1)
  union all
  (select e.cidr::text from ip_list_entry e join ip_list l on l.id = e.ip_list_id
    where e.cidr && p_cidr and l.kind = 'allow' order by 1 limit 1)
  limit 1
$$;
