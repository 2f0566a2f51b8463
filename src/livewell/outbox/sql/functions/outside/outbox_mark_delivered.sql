-- Finish a whole batch that outbox_claim gave, in one call.
--
-- Called by: programs of others.
-- Answer:    how many of these ids the token still held; an id that it does not hold is left alone.
CREATE OR REPLACE FUNCTION livewell.outbox_mark_delivered(p_token uuid, p_ids bigint[])
RETURNS integer
LANGUAGE sql
SET search_path = ''
AS $$
    SELECT livewell.outbox_mark(p_token, p_ids, 'delivered', NULL)
$$;
COMMENT ON FUNCTION livewell.outbox_mark_delivered IS
    'Marks claimed events as delivered; answers how many of them the token still held.';
REVOKE ALL ON FUNCTION livewell.outbox_mark_delivered FROM PUBLIC;
