-- Which contact new identities of a call join: that of the strongest known identity that may carry
-- others (merges = auto), the oldest if several are as strong. NULL: none does.
--
-- Called by: settle_identities, before and after it has locked the contacts.
-- p_added: places of the identities that this call has just written; they know nobody.
CREATE OR REPLACE FUNCTION livewell.find_home(
    p_tenant text, p_ready livewell.given_identity[], p_added integer[]
)
RETURNS uuid
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
BEGIN
    RETURN (
        SELECT i.contact_id
        FROM unnest(p_ready) u
        JOIN livewell.contact_identity i
            ON i.tenant = p_tenant AND i.type = u.type AND i.value = u.value
        JOIN livewell.contact c ON c.tenant = i.tenant AND c.id = i.contact_id
        WHERE u.merges = 'auto' AND u.place <> ALL (p_added)
        ORDER BY u.strength DESC, c.created_at, c.id LIMIT 1
    );
END
$$;
COMMENT ON FUNCTION livewell.find_home IS 'The contact that new identities of a call join, or NULL.';
REVOKE ALL ON FUNCTION livewell.find_home FROM PUBLIC;
