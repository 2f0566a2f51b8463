-- Refuse what enqueue_jobs cannot insert: a queue that is not declared, an unknown policy, a batch
-- that is sealed or does not exist.
--
-- Called by: enqueue_jobs, before insert_jobs.
-- Locks:     the batches, by id, until the end of the transaction: nobody seals them meanwhile.
CREATE OR REPLACE FUNCTION livewell.check_jobs(p_jobs jsonb)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_queues    pg_catalog.text[];
    v_missing   pg_catalog.text;
    v_unclear   pg_catalog.text;
    v_batches   bigint[];
BEGIN
    SELECT array_agg(DISTINCT coalesce(e ->> 'queue', '(none)')),
        array_agg(DISTINCT (e ->> 'batch_id')::bigint) FILTER (WHERE e ->> 'batch_id' IS NOT NULL),
        min(e ->> 'policy') FILTER (
            WHERE e ->> 'policy' NOT IN ('keep', 'raise', 'replace', 'again')
        )
    INTO v_queues, v_batches, v_unclear FROM jsonb_array_elements(p_jobs) e;
    SELECT n INTO v_missing FROM unnest(v_queues) AS n
    WHERE NOT EXISTS (SELECT FROM livewell.queue q WHERE q.name = n)
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'queue "%" is not declared', v_missing USING ERRCODE = 'LW002';
    END IF;
    IF v_unclear IS NOT NULL THEN
        RAISE EXCEPTION 'policy "%": keep, raise, replace and again are allowed', v_unclear
            USING ERRCODE = 'LW003';
    END IF;
    IF cardinality(v_batches) > 0 THEN
        -- KEY SHARE: sealing waits for us, finishing does not.
        PERFORM FROM livewell.batch b WHERE b.id = ANY (v_batches) ORDER BY b.id FOR KEY SHARE;
        IF EXISTS (
            SELECT FROM unnest(v_batches) AS i
            WHERE NOT EXISTS (SELECT FROM livewell.batch b WHERE b.id = i AND b.sealed_at IS NULL)
        ) THEN
            RAISE EXCEPTION
                'a batch among % is sealed or does not exist: nothing can be added to it', v_batches
                USING ERRCODE = 'LW007';
        END IF;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.check_jobs IS
    'Raises if one of these jobs names a queue, a policy or a batch that it cannot go to.';
REVOKE ALL ON FUNCTION livewell.check_jobs FROM PUBLIC;
