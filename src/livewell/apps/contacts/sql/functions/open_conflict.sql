-- Two contacts that are perhaps one person: a row that waits for somebody. There is one for each
-- pair.
--
-- Called by: join_contacts, which holds the locks of both.
CREATE OR REPLACE FUNCTION livewell.open_conflict(
    p_tenant text, p_one uuid, p_other uuid, p_why text
)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   pg_catalog.timestamptz := livewell.now();
    v_id    bigint;
BEGIN
    SELECT f.id INTO v_id FROM livewell.contact_conflict f
    WHERE f.tenant = p_tenant AND f.one_id = least(p_one, p_other)
        AND f.other_id = greatest(p_one, p_other);
    IF v_id IS NULL THEN
        INSERT INTO livewell.contact_conflict AS f (tenant, one_id, other_id, state, why, opened_at)
        VALUES (p_tenant, least(p_one, p_other), greatest(p_one, p_other), 'waiting', p_why, v_now)
        RETURNING f.id INTO v_id;
    END IF;
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION livewell.open_conflict IS 'Records that somebody has to decide about two contacts, and answers its number.';
REVOKE ALL ON FUNCTION livewell.open_conflict FROM PUBLIC;
