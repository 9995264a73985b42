-- version 1
-- Writes audit entries, given as an array of their columns, and what the Web UI is told of them.
create or replace function audit_record(p_hints text[], p_entries jsonb) returns void
language sql as $$
  insert into outbox (topic, key) select 'live', unnest(p_hints);
  insert into audit_entry (occurred_at, actor_type, actor_id, actor_name, ip, user_agent, action, target_type, target_id,
      target_name, metadata)
    select occurred_at, actor_type, actor_id, actor_name, ip, user_agent, action, target_type, target_id, target_name,
      metadata
      from jsonb_to_recordset(p_entries) as r(occurred_at timestamptz, actor_type text, actor_id text, actor_name text,
        ip text, user_agent text, action text, target_type text, target_id text, target_name text, metadata jsonb);
$$;
