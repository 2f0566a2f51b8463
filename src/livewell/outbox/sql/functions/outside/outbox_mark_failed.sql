-- Say that events which outbox_claim gave were not delivered: they are tried again after a pause,
-- and after their last attempt they are dead letters.
--
-- Called by: programs of others. Answer: how many of these ids the token still held.
CREATE OR REPLACE FUNCTION livewell.outbox_mark_failed(p_token uuid, p_ids bigint[], p_error text)
RETURNS integer
LANGUAGE sql
SET search_path = ''
AS $$
    SELECT livewell.outbox_mark(p_token, p_ids, 'failed', p_error)
$$;
COMMENT ON FUNCTION livewell.outbox_mark_failed IS
    'Marks claimed events as failed; answers how many of them the token still held.';
REVOKE ALL ON FUNCTION livewell.outbox_mark_failed FROM PUBLIC;
