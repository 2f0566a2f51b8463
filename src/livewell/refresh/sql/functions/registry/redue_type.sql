-- Rewrite due_at of one page of a type's keys after its time to live or its rule changed; answers
-- the last key of the page, NULL when it was the last page.
--
-- Called by: `types apply` and whoever changes a type, page by page until it answers NULL; one
--            call, one transaction.
-- Index:     ledger_pkey. Parked keys stay parked: their due_at is computed when somebody comes.
--            What is being fetched (due within its two minutes) is left to its store.
CREATE OR REPLACE FUNCTION livewell.redue_type(p_type text, p_after_key text, p_limit integer)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    v_now   timestamptz;
    v_type  livewell.data_type;
    v_queue text;
    v_keys  text[];
BEGIN
    SELECT * INTO v_type FROM livewell.data_type t WHERE t.name = p_type;
    v_type.definition := NULL;      -- see judge_keys
    v_type.columns := NULL;
    v_queue := livewell.refresh_queue(v_type.upstream, v_type.pool);
    v_keys := ARRAY(
        SELECT l.key FROM livewell.ledger l
        WHERE l.data_type = p_type AND l.key > coalesce(p_after_key, '') ORDER BY l.key
        LIMIT least(greatest(p_limit, 1), 10000));
    PERFORM FROM livewell.ledger l
    WHERE l.data_type = p_type AND l.key = ANY (v_keys) ORDER BY l.key FOR NO KEY UPDATE;
    v_now := livewell.now();
    UPDATE livewell.ledger l SET due_at = livewell.next_due(v_type, l, v_now)
    WHERE l.data_type = p_type AND l.key = ANY (v_keys) AND l.due_at IS NOT NULL
      AND NOT EXISTS (
          SELECT FROM livewell.job j
          WHERE j.queue = v_queue AND j.unique_key = p_type || ':' || l.key
            AND j.held_by IS DISTINCT FROM 'k');
    RETURN v_keys[least(greatest(p_limit, 1), 10000)];
END
$$;
COMMENT ON FUNCTION livewell.redue_type IS
    'Rewrites due_at of one page of a type; answers where the next page begins, NULL at the end.';
REVOKE ALL ON FUNCTION livewell.redue_type FROM PUBLIC;
