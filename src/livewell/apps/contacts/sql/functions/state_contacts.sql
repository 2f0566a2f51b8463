-- Contacts in the system state: how many there are, and what waits for a person.
--
-- Called by: system_state, which finds every state_<name>().
-- Contacts and identities are the planner's estimates; of conflicts 1,000 are counted, which then
-- means "or more".
-- Index:     contact_conflict_waiting_idx
-- Why SECURITY DEFINER: operators and readers may know how much waits, and not of whom.
CREATE OR REPLACE FUNCTION livewell.state_contacts()
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_now       pg_catalog.timestamptz := livewell.now();
    v_waiting   integer;
    v_oldest    pg_catalog.timestamptz;
    v_tenant    pg_catalog.text;
BEGIN
    PERFORM livewell.every_tenant(true);
    SELECT count(*), min(w.opened_at), (array_agg(w.tenant ORDER BY w.opened_at, w.id))[1]
    INTO v_waiting, v_oldest, v_tenant
    FROM (
        SELECT f.id, f.tenant, f.opened_at FROM livewell.contact_conflict f
        WHERE f.state = 'waiting' LIMIT 1000
    ) w;
    PERFORM livewell.every_tenant(false);
    RETURN jsonb_build_object(
        'how', 'exact', 'conflicts', v_waiting, 'oldest_tenant', v_tenant,
        'oldest_seconds', extract(epoch FROM v_now - v_oldest)::double precision,
        'contacts_estimate', (
            SELECT greatest(c.reltuples, 0)::bigint FROM pg_catalog.pg_class c
            WHERE c.oid = 'livewell.contact'::pg_catalog.regclass),
        'identities_estimate', (
            SELECT greatest(c.reltuples, 0)::bigint FROM pg_catalog.pg_class c
            WHERE c.oid = 'livewell.contact_identity'::pg_catalog.regclass)
    );
END
$$;
COMMENT ON FUNCTION livewell.state_contacts IS 'How many contacts there are, and how many conflicts wait.';
REVOKE ALL ON FUNCTION livewell.state_contacts FROM PUBLIC;
