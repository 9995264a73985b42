-- version 1
-- As config_publish, with the audit entry of the change (audit_record) in the same round trip: whatever is done under a
-- cluster's head lock is waited for by its next change.
create or replace function config_publish_recorded(
  p_cluster text, p_number bigint, p_set_hash bytea, p_entry_count bigint,
  p_reason text, p_params jsonb, p_actor jsonb, p_source text,
  p_entries jsonb, p_hashes bytea[], p_bodies bytea[],
  p_buckets smallint[], p_sums bytea[],
  p_features text[], p_counts bigint[],
  p_hints text[], p_audit jsonb
) returns void
language plpgsql as $$
begin
  perform config_publish(p_cluster, p_number, p_set_hash, p_entry_count, p_reason, p_params, p_actor, p_source, p_entries,
    p_hashes, p_bodies, p_buckets, p_sums, p_features, p_counts);
  perform audit_record(p_hints, p_audit);
end $$;
