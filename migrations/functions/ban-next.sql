-- version 1
-- The next number of the ban feed. The lock is held until the commit, so numbers are in the order of commits:
-- called among the last statements of the transaction.
create or replace function ban_next(out epoch bigint, out seq bigint)
language plpgsql as $$
begin
  perform pg_advisory_xact_lock(1398162179, 1);
  seq := nextval('ban_seq');
  epoch := (select s.epoch from console_state s);
end $$;
