-- Let row security show the rows of all tenants, or stop doing so.
--
-- Called by: prune_contacts, state_contacts; both answer numbers and no row.
-- Whoever sets livewell.every_tenant outside gains nothing: what acts for a tenant enters it before
-- it reads, and then the policy does not hold.
CREATE OR REPLACE FUNCTION livewell.every_tenant(p_on boolean)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    PERFORM set_config('livewell.tenant', '', true);
    PERFORM set_config('livewell.every_tenant', CASE WHEN p_on THEN 'on' ELSE '' END, true);
END
$$;
COMMENT ON FUNCTION livewell.every_tenant IS 'Shows the rows of all tenants to a function that counts or prunes.';
REVOKE ALL ON FUNCTION livewell.every_tenant FROM PUBLIC;
