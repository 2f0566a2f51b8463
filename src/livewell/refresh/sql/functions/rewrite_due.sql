-- After the time to live or the rule of a type has changed: give a page of its keys their new due time. Answers the last key of the page; NULL when there are no more.
--
-- Called by: `livewell types apply`, page by page, each its own transaction: a million keys must not be one. Index: ledger_pkey.
-- Skips rows that somebody is writing: whoever stores or dispatches them reads the type again. Parked keys stay parked.
CREATE OR REPLACE FUNCTION livewell.rewrite_due(p_type text, p_after text, p_limit integer)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_type      livewell.data_type := livewell.registered_type(p_type);
    v_keys      text[];
    v_mine      text[];     -- of these, the ones we could lock
    v_now       timestamptz;
BEGIN
    v_keys := ARRAY(SELECT l.key FROM livewell.ledger l WHERE l.data_type = v_type.name AND l.key > p_after COLLATE "C" ORDER BY l.key LIMIT least(p_limit, 1000));
    v_mine := ARRAY(SELECT l.key FROM livewell.ledger l WHERE l.data_type = v_type.name AND l.key = ANY (v_keys) AND l.due_at IS NOT NULL ORDER BY l.key FOR UPDATE SKIP LOCKED);
    v_now := livewell.now();
    UPDATE livewell.ledger l
    SET due_at = livewell.next_due(v_type, l, v_now), status_version = l.status_version + 1, status_at = greatest(v_now, l.status_at)
    WHERE l.data_type = v_type.name AND l.key = ANY (v_mine);
    RETURN v_keys[cardinality(v_keys)];
END
$$;
COMMENT ON FUNCTION livewell.rewrite_due IS 'Gives a page of the keys of a type their new due time.';
REVOKE ALL ON FUNCTION livewell.rewrite_due FROM PUBLIC;
