-- What resolve_contact answers.
--
-- Called by: known_contact, resolve_contact, settle_identities.
-- outcome: found, created, added, merged, conflict (somebody has to decide), blocked or erased (then
-- there is no contact).
CREATE OR REPLACE FUNCTION livewell.contact_answer(
    p_outcome text, p_contact uuid DEFAULT NULL, p_added integer DEFAULT 0,
    p_merged uuid[] DEFAULT '{}', p_conflicts bigint[] DEFAULT '{}', p_erased text[] DEFAULT '{}'
)
RETURNS jsonb
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $$
BEGIN
    RETURN jsonb_build_object(
        'contact', p_contact, 'outcome', p_outcome, 'added', p_added, 'merged', p_merged,
        'conflicts', p_conflicts, 'erased', p_erased
    );
END
$$;
COMMENT ON FUNCTION livewell.contact_answer IS 'The document that resolve_contact answers.';
REVOKE ALL ON FUNCTION livewell.contact_answer FROM PUBLIC;
