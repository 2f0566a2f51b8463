-- Forget merges that can no longer be undone (90 days) and answers that nobody asks for again
-- (a week); a bounded page per call.
--
-- Called by: housekeeping, until it answers 0.
-- Index:     contact_merge_merged_idx, contact_request_answered_idx
-- Why SECURITY DEFINER: no role may delete rows of tenants; its only input is a bounded number.
CREATE OR REPLACE FUNCTION livewell.prune_contacts(p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_now       pg_catalog.timestamptz := livewell.now();
    v_limit     integer := least(greatest(p_limit, 1), 10000);
    v_merges    integer;
    v_requests  integer;
BEGIN
    PERFORM livewell.every_tenant(true);
    DELETE FROM livewell.contact_merge m
    WHERE m.id = ANY (ARRAY(
        SELECT o.id FROM livewell.contact_merge o WHERE o.merged_at < v_now - interval '90 days'
        ORDER BY o.merged_at LIMIT v_limit FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_merges = ROW_COUNT;
    DELETE FROM livewell.contact_request q
    USING (
        SELECT o.tenant, o.request FROM livewell.contact_request o
        WHERE o.answered_at < v_now - interval '7 days'
        ORDER BY o.answered_at LIMIT v_limit FOR UPDATE SKIP LOCKED) old
    WHERE q.tenant = old.tenant AND q.request = old.request;
    GET DIAGNOSTICS v_requests = ROW_COUNT;
    PERFORM livewell.every_tenant(false);
    RETURN v_merges + v_requests;
END
$$;
COMMENT ON FUNCTION livewell.prune_contacts IS
    'Deletes a page of merges older than 90 days and of answers older than a week.';
REVOKE ALL ON FUNCTION livewell.prune_contacts FROM PUBLIC;
