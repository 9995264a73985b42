-- version 1
-- As ban_write_all, with the audit entries of the bans (audit_record) in the same round trip. They come first: writing bans
-- takes the feed's lock, which every other ban waits for.
create or replace function ban_write_all_recorded(p_bans jsonb, p_now timestamptz, p_hints text[], p_audit jsonb)
returns table (epoch bigint, seq bigint)
language plpgsql as $$
begin
  perform audit_record(p_hints, p_audit);
  return query select w.epoch, w.seq from ban_write_all(p_bans, p_now) w;
end $$;
