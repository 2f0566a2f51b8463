-- Write those identities of a call that nobody has, in their order; answers their places.
--
-- Called by: settle_identities.
-- Why in order, and before any contact is locked: an insert waits for another transaction that
-- writes, moves or deletes the same identity. All wait in one direction.
CREATE OR REPLACE FUNCTION livewell.write_identities(
    p_tenant text, p_ready livewell.given_identity[], p_contact uuid
)
RETURNS integer[]
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       pg_catalog.timestamptz := livewell.now();
    v_places    integer[];
BEGIN
    WITH put AS (
        INSERT INTO livewell.contact_identity AS i
            (tenant, type, value, contact_id, added_at, original)
        SELECT p_tenant, u.type, u.value, p_contact, v_now, u.original
        FROM unnest(p_ready) u ORDER BY u.place
        ON CONFLICT DO NOTHING
        RETURNING i.type, i.value
    )
    SELECT coalesce(array_agg(u.place ORDER BY u.place), '{}') INTO v_places
    FROM put p JOIN unnest(p_ready) u ON u.type = p.type AND u.value = p.value;
    RETURN v_places;
END
$$;
COMMENT ON FUNCTION livewell.write_identities IS 'Writes the identities that nobody has yet, and answers their places.';
REVOKE ALL ON FUNCTION livewell.write_identities FROM PUBLIC;
