-- Which job follows a batch, and when.
--
-- Called by: the page of a batch, beside show_batch: the columns of that one cannot change while
--            programs of the version before call it.
-- Index:     batch_pkey.
-- follow_when: done (however its jobs end) or succeeded (only if all do); NULL: nothing follows.
CREATE OR REPLACE FUNCTION livewell.show_follow_up(p_batch bigint)
RETURNS TABLE (follow_id bigint, follow_when text, queue text, kind text)
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT b.follow_id, b.follow_when, b.follow ->> 'queue', b.follow ->> 'kind'
    FROM livewell.batch b
    WHERE b.id = p_batch AND b.follow_id IS NOT NULL
$$;
COMMENT ON FUNCTION livewell.show_follow_up IS 'The job that follows a batch; no row if none does.';
REVOKE ALL ON FUNCTION livewell.show_follow_up FROM PUBLIC;
