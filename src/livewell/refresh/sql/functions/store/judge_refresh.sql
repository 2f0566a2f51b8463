-- What an answer means for what is stored: stored, corrected, unchanged, older, missing,
-- type_changed, forgotten, singly, unproven, or the reason for which it is refused.
--
-- Called by: settle_refreshes, the key's ledger row locked and read after that.
-- p_pinned:    the type's version that the job was made for. The definition that the answer was
--              read with must be the same one, and both must still be in force.
-- older:       the source's own time is before what is stored: refused, whoever brings it (GU1).
--              Upstreams bounce between replicas.
-- corrected:   the same source time and other content: stored, and counted, for dates do not move
--              when figures are corrected (R14).
-- missing:     the upstream knows no such key, and never did; of a key that had data the same
--              answer is a failure of the upstream (empty).
-- forgotten:   "not modified", but since what we have not stored; or the tail of a history that is
--              not what is stored: asked again, without the condition.
CREATE OR REPLACE FUNCTION livewell.judge_refresh(
    p_type livewell.data_type, p_ledger livewell.ledger, p_pinned bigint, p_result jsonb)
RETURNS text
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_outcome   text := p_result ->> 'outcome';
    v_source    timestamp with time zone := (p_result ->> 'source_at')::timestamp with time zone;
    v_same      boolean := p_ledger.fetched_at IS NOT NULL
        AND coalesce(p_ledger.content_hash = decode(p_result ->> 'hash', 'hex'), false);
BEGIN
    IF p_type.version IS NULL OR p_type.version IS DISTINCT FROM p_pinned
       OR p_type.version IS DISTINCT FROM (p_result ->> 'version')::bigint THEN
        RETURN 'type_changed';
    END IF;
    IF v_outcome = 'missing' THEN
        RETURN CASE WHEN p_ledger.fetched_at IS NULL THEN 'missing' ELSE 'empty' END;
    ELSIF v_outcome = 'same' THEN
        RETURN CASE WHEN v_same THEN 'unchanged' ELSE 'forgotten' END;
    ELSIF v_outcome <> 'value' THEN
        RETURN
            CASE
                WHEN v_outcome IN ('singly', 'unproven', 'forgotten') THEN v_outcome
                ELSE coalesce(p_result ->> 'reason', 'transient') END;
    END IF;
    IF p_type.has_source_time THEN
        IF v_source IS NULL THEN
            RETURN 'no_source_time';
        ELSIF v_source < p_ledger.source_at THEN
            RETURN 'older';
        ELSIF v_source = p_ledger.source_at AND NOT v_same THEN
            RETURN 'corrected';
        END IF;
    END IF;
    RETURN CASE WHEN v_same THEN 'unchanged' ELSE 'stored' END;
END
$$;
COMMENT ON FUNCTION livewell.judge_refresh IS
    'Compares an answer with what is stored and says what becomes of it.';
REVOKE ALL ON FUNCTION livewell.judge_refresh FROM PUBLIC;
